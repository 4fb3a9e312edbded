#include "base/file_lock.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "child.h"
#include "scratch_folder.h"

namespace lacuna {
namespace {

using testing::HasSubstr;

TEST(FileLock, IsHeldByOneAtATime) {
  const ScratchFolder folder;
  FileLock second(folder / "lock");
  {
    FileLock first(folder / "lock");
    EXPECT_FALSE(first.is_held());
    EXPECT_TRUE(first.try_take());
    EXPECT_TRUE(first.is_held());
    EXPECT_FALSE(second.try_take());
    EXPECT_FALSE(second.take_within(std::chrono::milliseconds(50), "waiting"));
    EXPECT_FALSE(second.is_held());
  }
  EXPECT_TRUE(second.take_within(std::chrono::milliseconds(0), "waiting"));
  EXPECT_TRUE(second.is_held());
}

TEST(FileLock, IsWaitedForUntilAProcessThatIsKilledLetsGoOfIt) {
  const ScratchFolder folder;
  const pid_t child = start_child([&] {
    FileLock lock(folder / "lock");
    lock.try_take();
    folder.write("is held", "");
    pause();
    return 0;
  });
  while (!std::filesystem::exists(folder / "is held")) usleep(1000);
  FileLock lock(folder / "lock");
  EXPECT_FALSE(lock.try_take());
  kill_child(child);
  EXPECT_TRUE(lock.take_within(std::chrono::minutes(1), "waiting"));
}

TEST(FileLock, IsInPlaceUntilItsFileOrFolderIsRemovedOrReplaced) {
  namespace fs = std::filesystem;
  const ScratchFolder folder;
  fs::create_directory(folder / "run");
  const FileLock lock(folder / "run/lock");
  EXPECT_TRUE(lock.is_in_place());
  fs::rename(folder / "run", folder / "moved");
  EXPECT_FALSE(lock.is_in_place());
  fs::create_directory(folder / "run");
  folder.write("run/lock", "");
  EXPECT_FALSE(lock.is_in_place());
  fs::remove_all(folder / "run");
  fs::rename(folder / "moved", folder / "run");
  EXPECT_TRUE(lock.is_in_place());
  fs::remove(folder / "run/lock");
  EXPECT_FALSE(lock.is_in_place());
}

TEST(FileLock, ThatCannotBeMadeNamesTheFolder) {
  const ScratchFolder folder;
  EXPECT_THAT(message_of<MachineError>([&] { const FileLock lock(folder / "no folder/lock"); }),
              HasSubstr("no folder: cannot be written: No such file"));
}

}  // namespace
}  // namespace lacuna
