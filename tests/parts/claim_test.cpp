#include "parts/claim.h"

#include <gmock/gmock.h>
#include <utime.h>

#include <optional>

#include "../base/child.h"
#include "../base/scratch_folder.h"
#include "base/error.h"
#include "base/resources.h"
#include "parts/folder_clock.h"

namespace lacuna {
namespace {

constexpr double kLease = 600;

TEST(Claim, IsOneProcesssUntilItEnds) {
  const ScratchFolder folder;
  const FolderClock clock(folder.path());
  {
    const auto mine = Claim::try_take(folder / "claim", clock.now(), kLease);
    ASSERT_NE(mine, nullptr);
    EXPECT_TRUE(mine->is_held());
    const ClaimState state = look_at_claim(folder / "claim", clock.now(), kLease);
    EXPECT_TRUE(state.is_there);
    EXPECT_FALSE(state.is_stale);
    EXPECT_EQ(state.host, host_name());
    EXPECT_EQ(state.process, getpid());
    EXPECT_EQ(Claim::try_take(folder / "claim", clock.now(), kLease), nullptr);
    EXPECT_EQ(exit_code_of_child([&] { return Claim::try_take(folder / "claim", clock.now(), kLease) == nullptr ? 0 : 1; }), 0);
  }
  EXPECT_FALSE(look_at_claim(folder / "claim", clock.now(), kLease).is_there);
}

TEST(Claim, OfAKilledProcessIsFreeAtOnce) {
  const ScratchFolder folder;
  const FolderClock clock(folder.path());
  const pid_t child = start_child([&] {
    const auto claim = Claim::try_take(folder / "claim", clock.now(), kLease);
    pause();
    return 0;
  });
  ASSERT_TRUE(comes_true([&] { return !bytes_of(folder / "claim").empty(); }));
  EXPECT_FALSE(look_at_claim(folder / "claim", clock.now(), kLease).is_stale);
  kill_child(child);
  EXPECT_TRUE(look_at_claim(folder / "claim", clock.now(), kLease).is_stale);
  const auto mine = Claim::try_take(folder / "claim", clock.now(), kLease);
  ASSERT_NE(mine, nullptr);
  EXPECT_TRUE(mine->is_held());
}

TEST(Claim, OfAnEarlierProcessWithTheSameNumberIsFree) {
  const ScratchFolder folder;
  const FolderClock clock(folder.path());
  std::string text;
  {
    const auto mine = Claim::try_take(folder / "claim", clock.now(), kLease);
    text = bytes_of(folder / "claim");
  }
  const size_t ticks = text.find("\"start_ticks\":");
  ASSERT_NE(ticks, std::string::npos);
  write_bytes(folder / "claim", text.substr(0, ticks) + "\"start_ticks\":1}\n");
  EXPECT_TRUE(look_at_claim(folder / "claim", clock.now(), kLease).is_stale);
}

TEST(Claim, IsLostOnceItWasNotTouchedForTheLease) {
  const ScratchFolder folder;
  const FolderClock clock(folder.path());
  const auto slow = Claim::try_take(folder / "claim", clock.now(), kLease);
  const utimbuf long_ago = {.actime = 1, .modtime = 1};
  utime((folder / "claim").c_str(), &long_ago);
  const auto next = Claim::try_take(folder / "claim", clock.now(), kLease);
  ASSERT_NE(next, nullptr);
  EXPECT_FALSE(slow->is_held());
  EXPECT_TRUE(next->is_held());
}

TEST(Claim, IsTouchedWhileItIsHeld) {
  const ScratchFolder folder;
  const FolderClock clock(folder.path());
  const auto claim = Claim::try_take(folder / "claim", clock.now(), .5);
  const utimbuf long_ago = {.actime = 1, .modtime = 1};
  utime((folder / "claim").c_str(), &long_ago);
  EXPECT_TRUE(comes_true([&] { return !look_at_claim(folder / "claim", clock.now(), kLease).is_stale; }));
}

TEST(Claim, StaysWithWhoTookItOver) {
  const ScratchFolder folder;
  const FolderClock clock(folder.path());
  std::optional<std::unique_ptr<Claim>> slow(Claim::try_take(folder / "claim", clock.now(), kLease));
  const utimbuf long_ago = {.actime = 1, .modtime = 1};
  utime((folder / "claim").c_str(), &long_ago);
  const auto next = Claim::try_take(folder / "claim", clock.now(), kLease);
  slow.reset();
  EXPECT_TRUE(next->is_held());
}

TEST(Claim, SaysWhyItCannotBeMade) {
  const ScratchFolder folder;
  EXPECT_THAT(message_of<MachineError>([&] { Claim::try_take(folder / "none/claim", 0, kLease); }),
              testing::HasSubstr("none/claim: cannot be written: No such file or directory"));
  EXPECT_THAT(message_of<MachineError>([&] { const FolderClock clock(folder / "none"); }), testing::HasSubstr("none: cannot be written"));
}

}  // namespace
}  // namespace lacuna
