#include "checkpoint/durable_files.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "scratch.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// The id of a process that has ended.
std::string ended_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return std::to_string(child);
}

TEST(DurableFile, DigestIsThatOfTheBytes) {
  const ScratchFolder folder;
  DurableFile file(folder / "a");
  file.write("hello ", 6);
  file.write("world", 5);
  const FileDigest digest = file.finish();
  EXPECT_EQ(bytes_of(folder / "a"), "hello world");
  EXPECT_EQ(digest, digest_of(folder / "a"));
  EXPECT_EQ(digest.bytes, 11u);
  EXPECT_EQ(digest.xxh3_128, "df8d09e93f874900a99b8775cc15b6c7");  // as xxh128sum prints it
}

TEST(DurableFile, AFullDiskIsAMachineError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this machine";
  DurableFile file("/dev/full");
  EXPECT_THROW(
      {
        file.write("x", 1);
        file.finish();
      },
      MachineError);
}

TEST(FolderInTheMaking, AppearsWithCommit) {
  const ScratchFolder folder;
  FolderInTheMaking making(folder / "step_1");
  write_durably(making.path() / "a", "new");
  EXPECT_FALSE(fs::exists(folder / "step_1"));
  making.commit();
  EXPECT_EQ(bytes_of(folder / "step_1/a"), "new");
}

TEST(FolderInTheMaking, ReplacesAFolder) {
  const ScratchFolder folder;
  fs::create_directory(folder / "step_1");
  write_bytes(folder / "step_1/old", "old");
  FolderInTheMaking making(folder / "step_1");
  write_durably(making.path() / "a", "new");
  making.commit();
  EXPECT_FALSE(fs::exists(folder / "step_1/old"));
  EXPECT_EQ(bytes_of(folder / "step_1/a"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

TEST(FolderInTheMaking, LeavesNothingWithoutCommit) {
  const ScratchFolder folder;
  {
    FolderInTheMaking making(folder / "step_1");
    write_durably(making.path() / "a", "new");
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Leftovers, OfEndedProcessesAreRemoved) {
  const ScratchFolder folder;
  fs::create_directory(folder / (".step_1.tmp." + ended_process()));
  write_bytes(folder / (".best.tmp." + ended_process()), "x");
  remove_leftovers(folder.path());
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Leftovers, OfLivingProcessesStay) {
  const ScratchFolder folder;
  fs::create_directory(folder / (".step_1.tmp." + std::to_string(getppid())));
  remove_leftovers(folder.path());
  EXPECT_FALSE(fs::is_empty(folder.path()));
}

TEST(Leftovers, AFolderThatSteppedAsideComesBack) {
  const ScratchFolder folder;
  fs::create_directory(folder / (".step_1.old." + ended_process()));
  remove_leftovers(folder.path());
  EXPECT_TRUE(fs::exists(folder / "step_1"));
}

TEST(Leftovers, OtherFilesAreLeftAlone) {
  const ScratchFolder folder;
  for (const char* name : {".tmp.1", "step_1.tmp.99999999", ".step_1.tmp.x", ".hidden", ".a.b.99999999"}) write_bytes(folder / name, "x");
  remove_leftovers(folder.path());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 5);
}

TEST(ReplaceLink, PointsElsewhereInOneStep) {
  const ScratchFolder folder;
  replace_link(folder / "last", "step_1");
  replace_link(folder / "last", "step_2");
  EXPECT_EQ(fs::read_symlink(folder / "last"), "step_2");
}

}  // namespace
}  // namespace lacuna
