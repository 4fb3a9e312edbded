#include "base/output.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <set>

#include "base/error.h"
#include "base/system_error.h"
#include "child.h"
#include "scratch_folder.h"
#include "system_calls.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

void write_pair(const ScratchFolder& folder, const std::string& generation, const std::vector<fs::path>& outdated = {}) {
  Output src(folder / "kept.src"), tgt(folder / "kept.tgt"), scores(folder / "scores.gz");
  for (Output* const output : {&src, &tgt, &scores}) output->write(generation);
  finish_together({&src, &tgt, &scores}, outdated);
}

/// What the files say that are there.
std::set<std::string> generations(const ScratchFolder& folder) {
  std::set<std::string> found;
  for (const char* const name : {"kept.src", "kept.tgt", "only_once"})
    if (fs::exists(folder / name)) found.insert(bytes_of(folder / name));
  return found;
}

TEST(FinishTogether, GivesEachFileItsName) {
  const ScratchFolder folder;
  write_pair(folder, "first");
  write_pair(folder, "second");
  EXPECT_EQ(generations(folder), std::set<std::string>{"second"});
  EXPECT_EQ(folder.num_entries(), 3u);
}

TEST(FinishTogether, NeverLeavesFilesOfTwoGenerationsWhereverTheProcessIsKilled) {
  for (int last_call = 0;; ++last_call) {
    const ScratchFolder folder;
    write_pair(folder, "first");
    folder.write("only_once", "first");
    const int code = exit_code_of_child([&] {
      WatchedCalls watched(folder.path());
      watched.error = [&](const std::string&) {
        if (std::ssize(watched.calls) > last_call) kill(getpid(), SIGKILL);
        return 0;
      };
      write_pair(folder, "second", {folder / "only_once"});
      return 0;
    });
    EXPECT_LE(generations(folder).size(), 1u) << "killed before call " << last_call + 1;
    write_pair(folder, "second", {folder / "only_once"});
    EXPECT_EQ(generations(folder), std::set<std::string>{"second"});
    EXPECT_EQ(folder.num_entries(), 3u) << "nothing of the killed process stays";
    if (code == 0) {
      EXPECT_GT(last_call, 9);  // three files: each synced, unlinked, renamed
      return;
    }
    ASSERT_EQ(code, kKilled);
  }
}

TEST(FinishTogether, LeavesTheFormerFilesIfOneOfTheNewOnesCannotBeWritten) {
  const ScratchFolder folder;
  write_pair(folder, "first");
  WatchedCalls watched(folder.path());
  watched.error = [](const std::string& call) { return call.starts_with("fsync kept.tgt") ? EIO : 0; };
  EXPECT_THAT(message_of<MachineError>([&] { write_pair(folder, "second"); }), HasSubstr("kept.tgt: cannot be written: Input/output"));
  EXPECT_EQ(generations(folder), std::set<std::string>{"first"});
  EXPECT_EQ(folder.num_entries(), 3u);
}

TEST(MakeOutputFolder, TellsTheUsersMistakesFromTheMachines) {
  const ScratchFolder folder;
  folder.write("file", "");
  EXPECT_THAT(message_of<DataError>([&] { make_output_folder(folder / "file"); }), HasSubstr("file: is not a folder"));
  EXPECT_THAT(message_of<DataError>([&] { make_output_folder(folder / std::string(300, 'x')); }), HasSubstr("File name too long"));
  fs::create_symlink("loop", folder / "loop");
  EXPECT_THAT(message_of<DataError>([&] { make_output_folder(folder / "loop/within"); }), HasSubstr("Too many levels of symbolic links"));
}

TEST(SystemError, SaysWhoseFaultItIs) {
  for (const int error : {EIO, ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, EROFS, ESTALE})
    EXPECT_EQ(message_of<MachineError>([&] { fail_by(error, "x: cannot be read (", ")"); }),
              std::string("x: cannot be read (") + std::strerror(error) + ")");
  for (const int error : {ENOENT, ENOTDIR, EISDIR, EACCES, ELOOP, ENAMETOOLONG})
    EXPECT_EQ(message_of<DataError>([&] { fail_by(error, "x: "); }), std::string("x: ") + std::strerror(error));
}

TEST(SystemError, ACallThatASignalInterruptsIsMadeAgain) {
  int calls = 0;
  const auto interrupted_twice = [&] {
    errno = EINTR;
    return ++calls < 3 ? -1 : 7;
  };
  EXPECT_EQ(uninterrupted(interrupted_twice), 7);
  const auto refused = [&] {
    errno = EACCES;
    return -1;
  };
  EXPECT_EQ(uninterrupted(refused), -1);
}

}  // namespace
}  // namespace lacuna
