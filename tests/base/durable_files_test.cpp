#include "base/durable_files.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <cerrno>
#include <map>

#include "base/error.h"
#include "child.h"
#include "scratch_folder.h"
#include "system_calls.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

/// Returns the temporary name under which a process of this machine writes step_1, or moves the former one aside
/// ("old").
fs::path temporary_of(const ScratchFolder& folder, pid_t process, const std::string& mark = "tmp") {
  const std::string machine = StagedFolder(folder / "step_1").path().stem().extension().string();
  return folder / (".step_1." + mark + machine + "." + std::to_string(process));
}

/// Runs `action` while the process may open one more file: enough to sync a folder, not to list one within it.
template <class Action>
void with_one_more_file(Action&& action) {
  rlimit usual = {};
  getrlimit(RLIMIT_NOFILE, &usual);
  const int next = dup(STDIN_FILENO);
  close(next);
  rlimit few = usual;
  few.rlim_cur = static_cast<rlim_t>(next) + 1;
  setrlimit(RLIMIT_NOFILE, &few);
  EXPECT_NO_THROW(action());
  setrlimit(RLIMIT_NOFILE, &usual);
}

TEST(HashingFileWriter, DigestIsThatOfTheBytes) {
  const ScratchFolder folder;
  HashingFileWriter file(folder / "a");
  file.write("hello ");
  file.write("world");
  const FileDigest digest = file.finish();
  EXPECT_EQ(bytes_of(folder / "a"), "hello world");
  EXPECT_EQ(digest, digest_of(folder / "a"));
  EXPECT_EQ(digest.bytes, 11u);
  EXPECT_EQ(digest.xxh3_128, "df8d09e93f874900a99b8775cc15b6c7");  // as xxh128sum prints it
}

TEST(HashingFileWriter, AFullDiskIsAMachineError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this machine";
  HashingFileWriter file("/dev/full");
  EXPECT_THROW(
      {
        file.write("x");
        file.finish();
      },
      MachineError);
}

TEST(StagedFolder, AppearsWithCommit) {
  const ScratchFolder folder;
  StagedFolder staged(folder / "step_1");
  write_durably(staged.path() / "a", "new");
  EXPECT_FALSE(fs::exists(folder / "step_1"));
  staged.commit();
  EXPECT_EQ(bytes_of(folder / "step_1/a"), "new");
}

TEST(StagedFolder, ReplacesAFolder) {
  const ScratchFolder folder;
  fs::create_directory(folder / "step_1");
  write_bytes(folder / "step_1/old", "old");
  StagedFolder staged(folder / "step_1");
  write_durably(staged.path() / "a", "new");
  staged.commit();
  EXPECT_FALSE(fs::exists(folder / "step_1/old"));
  EXPECT_EQ(bytes_of(folder / "step_1/a"), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

/// Stages step_1 of a folder while system calls are recorded.
class WatchedFolder : public testing::Test {
 protected:
  void write_former() const {
    fs::create_directory(folder_ / "step_1");
    folder_.write("step_1/a", "old");
  }
  void make() const {
    StagedFolder staged(folder_ / "step_1");
    write_durably(staged.path() / "a", "new");
    staged.commit();
  }
  void expect_only(const std::string& content) const {
    EXPECT_EQ(bytes_of(folder_ / "step_1/a"), content);
    EXPECT_EQ(folder_.num_entries(), 2u);
  }
  /// Prefixes of system calls that fail.
  void fail(const std::map<std::string, int>& errors) {
    watched_.error = [=](const std::string& call) {
      for (const auto& [begin, error] : errors)
        if (call.starts_with(begin)) return error;
      return 0;
    };
  }

  const ScratchFolder folder_;
  const std::string made_ = temporary_of(folder_, getpid()).filename().string();
  const std::string former_ = temporary_of(folder_, getpid(), "old").filename().string();
  WatchedCalls watched_{folder_.path()};
};

TEST_F(WatchedFolder, IsOnTheDiskBeforeItsNameAndItsNameBeforeCommitComesBack) {
  make();
  EXPECT_THAT(watched_.calls, ElementsAre("fsync " + made_ + "/a", "fsync " + made_, "exchange " + made_ + " step_1",
                                          "rename step_1 " + former_, "rename " + made_ + " step_1", "fsync ."));
}

TEST_F(WatchedFolder, ReplacesAFolderInOneStep) {
  write_former();
  make();
  EXPECT_THAT(watched_.calls, ElementsAre("fsync " + made_ + "/a", "fsync " + made_, "exchange " + made_ + " step_1", "fsync ."));
  expect_only("new");
}

TEST_F(WatchedFolder, ReplacesAFolderWhereNamesCannotBeExchanged) {
  write_former();
  fail({{"exchange", EINVAL}});
  make();
  EXPECT_THAT(watched_.calls, ElementsAre("fsync " + made_ + "/a", "fsync " + made_, "exchange " + made_ + " step_1",
                                          "rename step_1 " + former_, "rename " + made_ + " step_1", "fsync ."));
  expect_only("new");
}

TEST_F(WatchedFolder, PutsTheFormerOneBackIfTheNewOneCannotTakeItsName) {
  write_former();
  fail({{"exchange", EINVAL}, {"rename " + made_, EIO}});
  EXPECT_THAT(message_of<MachineError>([&] { make(); }), HasSubstr("cannot rename a folder to " + folder_ / "step_1" + ": Input/output"));
  EXPECT_EQ(watched_.calls.back(), "rename " + former_ + " step_1");
  expect_only("old");
}

TEST_F(WatchedFolder, LeavesAFormerOneThatCannotStepAside) {
  write_former();
  fail({{"exchange", EINVAL}, {"rename step_1", EACCES}});
  EXPECT_THAT(message_of<MachineError>([&] { make(); }), HasSubstr("cannot replace " + folder_ / "step_1"));
  expect_only("old");
}

TEST_F(WatchedFolder, ThatCannotBeSyncedIsNotPutInPlace) {
  write_former();
  fail({{"fsync " + made_ + "/a", EIO}});
  EXPECT_THAT(message_of<MachineError>([&] { make(); }), HasSubstr(made_ + "/a: cannot be written"));
  expect_only("old");
  watched_.error = [&](const std::string& call) { return call == "fsync " + made_ ? EIO : 0; };
  EXPECT_THAT(message_of<MachineError>([&] { make(); }), HasSubstr("cannot sync the folder"));
  expect_only("old");
}

TEST_F(WatchedFolder, SaysThatItsNameMayNotBeOnTheDisk) {
  watched_.error = [](const std::string& call) { return call == "fsync ." ? EIO : 0; };
  EXPECT_THAT(message_of<MachineError>([&] { make(); }), HasSubstr("cannot sync the folder"));
}

TEST_F(WatchedFolder, NeedsNoFileSystemThatSyncsFolders) {
  watched_.error = [&](const std::string& call) { return call == "fsync ." || call == "fsync " + made_ ? EINVAL : 0; };
  make();
  expect_only("new");
}

TEST(StagedFolder, LeavesNothingWithoutCommit) {
  const ScratchFolder folder;
  {
    StagedFolder staged(folder / "step_1");
    write_durably(staged.path() / "a", "new");
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(StagedFolder, MakesNoFolderAnewThatIsGone) {
  const ScratchFolder folder;
  const std::string place = folder / "run/step_1";
  EXPECT_THROW(StagedFolder{place}, MachineError);
  EXPECT_FALSE(fs::exists(folder / "run"));
  make_parent_of(place);
  StagedFolder(place).commit();
  EXPECT_TRUE(fs::is_directory(place));
}

TEST(StagedFolder, ThatReplacesWhatCannotBeRemovedNowLeavesItForLater) {
  const ScratchFolder folder;
  fs::create_directories(folder / "step_1/a/b");
  StagedFolder staged(folder / "step_1");
  with_one_more_file([&] { staged.commit(); });
  EXPECT_TRUE(fs::is_empty(folder / "step_1"));
  EXPECT_TRUE(fs::exists(staged.path()));
  remove_leftovers(folder.path());
  EXPECT_FALSE(fs::exists(staged.path()));
}

TEST(RemoveFolder, LeavesWhatCannotBeRemovedNowForLater) {
  const ScratchFolder folder;
  fs::create_directories(folder / "step_1/a/b");
  with_one_more_file([&] { remove_folder(folder / "step_1"); });
  EXPECT_FALSE(fs::exists(folder / "step_1"));
  EXPECT_FALSE(fs::is_empty(folder.path()));
  remove_leftovers(folder.path());
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Leftovers, OfEndedProcessesAreRemoved) {
  const ScratchFolder folder;
  const fs::path made = temporary_of(folder, ended_process()), written = temporary_of(folder, ended_process());
  fs::create_directory(made);
  write_bytes(written, "x");
  remove_leftovers(folder.path());
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Leftovers, OfLivingProcessesStay) {
  const ScratchFolder folder;
  fs::create_directory(temporary_of(folder, getppid()));
  remove_leftovers(folder.path());
  EXPECT_FALSE(fs::is_empty(folder.path()));
}

TEST(Leftovers, OfOtherMachinesAreRemovedWhenNobodyHasTouchedThemForLong) {
  const ScratchFolder folder;
  for (const pid_t process : {ended_process(), getpid()})
    fs::create_directory(folder / (".step_1.tmp.0123456789abcdef." + std::to_string(process)));
  remove_leftovers(folder.path());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2);
  remove_leftovers(folder.path(), std::chrono::seconds(0));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Leftovers, AFolderThatSteppedAsideComesBack) {
  const ScratchFolder folder;
  fs::create_directory(temporary_of(folder, ended_process(), "old"));
  remove_leftovers(folder.path());
  EXPECT_TRUE(fs::exists(folder / "step_1"));
}

TEST(Leftovers, OtherFilesAreLeftAlone) {
  const ScratchFolder folder;
  const std::vector<std::string> names = {".tmp.1",        "step_1.tmp.99999999", ".step_1.tmp.x",       ".hidden",
                                          ".a.b.99999999", ".ssh.old.2023",       ".zshrc.old.20240101", ".step_1.tmp.99999999"};
  for (const std::string& name : names) write_bytes(folder / name, "x");
  write_bytes(folder / "ssh", "x");
  remove_leftovers(folder.path(), std::chrono::seconds(0));
  for (const std::string& name : names) EXPECT_TRUE(fs::exists(folder / name)) << name;
}

/// The path that a process gives its first temporary folder.
fs::path temporary_folder_of(const std::string& writer) {
  return fs::path(std::getenv("TMPDIR")) / ("lacuna.lacuna-tmp." + writer + ".0");
}

TEST(TemporaryFolder, OfAKilledProcessGoesWithTheNextThatIsMade) {
  const ScratchFolder folder;
  const ScopedVariable place("TMPDIR", folder.path());
  const int code = exit_code_of_child([] {
    const TemporaryFolder temporary;
    write_bytes(temporary.path() / "a", "x");
    return kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(code, kKilled);
  EXPECT_EQ(folder.num_entries(), 2u);
  {
    const TemporaryFolder next;
    EXPECT_EQ(folder.num_entries(), 1u);
    EXPECT_EQ(fs::status(next.path()).permissions(), fs::perms::owner_all);
  }
  EXPECT_EQ(folder.num_entries(), 0u);
}

TEST(TemporaryFolder, OfALivingProcessAnotherUserOrAnotherMachineStays) {
  const ScratchFolder folder;
  const ScopedVariable place("TMPDIR", folder.path());
  const std::string machine = WriterProcess().name().substr(0, 17);
  fs::create_directory(temporary_folder_of(machine + std::to_string(getppid())));
  fs::create_directory(temporary_folder_of("0123456789abcdef." + std::to_string(ended_process())));
  const fs::path of_other = temporary_folder_of(machine + std::to_string(ended_process()));
  fs::create_directory(of_other);
  const bool is_root = chown(of_other.c_str(), 65534, 65534) == 0;
  { const TemporaryFolder next; }
  EXPECT_EQ(folder.num_entries(), is_root ? 3u : 2u);
}

TEST(SyncFile, IsTriedAgainAfterASignalAndFailsWithTheReason) {
  const ScratchFolder folder;
  const std::string file = folder.write("a", "x");
  WatchedCalls watched(folder.path());
  watched.error = [&](const std::string&) { return watched.calls.size() < 3 ? EINTR : 0; };
  sync_file(file);
  EXPECT_EQ(watched.calls.size(), 3u);
  watched.error = [](const std::string&) { return EIO; };
  EXPECT_THAT(message_of<MachineError>([&] { sync_file(file); }), HasSubstr("a: Input/output error"));
}

TEST(FileReplacement, IsMadeThoughSignalsInterruptEveryCall) {
  const ScratchFolder folder;
  WatchedCalls watched(folder.path());
  std::map<std::string, int> tries;
  watched.error = [&](const std::string& call) { return ++tries[call] == 1 ? EINTR : 0; };
  write_file_atomically(folder / "a", "x");
  EXPECT_EQ(bytes_of(folder / "a"), "x");
  EXPECT_EQ(folder.num_entries(), 1u);
}

TEST(FileReplacement, SaysThatItsFolderCannotBeSynced) {
  const ScratchFolder folder;
  WatchedCalls watched(folder.path());
  watched.error = [](const std::string& call) { return call == "fsync ." ? EIO : 0; };
  testing::internal::CaptureStderr();
  write_file_atomically(folder / "a", "x");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cannot sync the folder " + folder.path().string() + ": Input/output"));
  EXPECT_EQ(bytes_of(folder / "a"), "x");
}

TEST(DropZerosAtEnd, LeavesTheText) {
  const ScratchFolder folder;
  const std::string file = folder.write("log", std::string("one\n\0two\0\0\0", 11));
  EXPECT_EQ(drop_zeros_at_end(file), 3u);
  EXPECT_EQ(bytes_of(file), std::string("one\n\0two", 8));
  EXPECT_EQ(drop_zeros_at_end(file), 0u);
  EXPECT_EQ(drop_zeros_at_end(folder.write("zeros", std::string(9, '\0'))), 9u);
  EXPECT_EQ(drop_zeros_at_end(folder / "nothing"), 0u);
}

TEST(ReplaceLink, PointsElsewhereInOneStep) {
  const ScratchFolder folder;
  replace_link(folder / "last", "step_1");
  const WatchedCalls watched(folder.path());
  replace_link(folder / "last", "step_2");
  EXPECT_EQ(fs::read_symlink(folder / "last"), "step_2");
  ASSERT_EQ(watched.calls.size(), 2u);
  EXPECT_THAT(watched.calls[0], AllOf(HasSubstr("rename .last.tmp."), EndsWith(" last")));
  EXPECT_EQ(watched.calls[1], "fsync .");
}

TEST(ReplaceLink, ThatFailsLeavesTheOldOne) {
  const ScratchFolder folder;
  replace_link(folder / "last", "step_1");
  WatchedCalls watched(folder.path());
  watched.error = [](const std::string&) { return EIO; };
  EXPECT_THAT(message_of<MachineError>([&] { replace_link(folder / "last", "step_2"); }), HasSubstr("cannot replace the link"));
  EXPECT_EQ(fs::read_symlink(folder / "last"), "step_1");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
}

}  // namespace
}  // namespace lacuna
