#include "kernels/barrier_waits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

namespace lacuna {
namespace {

constexpr int64_t kMs = 1'000'000, kWindow = 50 * kMs;  // 20 windows are enough for a decision

TEST(Competition, IsMetWhereThreadsWaitForCpus) {
  Competition competition;
  EXPECT_FALSE(competition.observe({.ran = 100 * kWindow, .delayed = 1 * kWindow}));
  EXPECT_TRUE(competition.observe({.ran = 150 * kWindow, .delayed = 51 * kWindow}));
  EXPECT_FALSE(competition.observe({.ran = 250 * kWindow, .delayed = 52 * kWindow}));
}

TEST(Competition, IsDecidedAnewOnlyAfterTheProcessHasRun) {
  Competition competition;
  EXPECT_TRUE(competition.observe({.ran = 50 * kWindow, .delayed = 50 * kWindow}));
  EXPECT_TRUE(competition.observe({.ran = 55 * kWindow, .delayed = 50 * kWindow}));
  EXPECT_TRUE(competition.observe({.ran = 60 * kWindow, .delayed = 50 * kWindow}));
  EXPECT_FALSE(competition.observe({.ran = 75 * kWindow, .delayed = 50 * kWindow}));
}

TEST(Competition, IsNotDecidedByTimesOfThreadsThatHaveEnded) {
  Competition competition;
  EXPECT_TRUE(competition.observe({.ran = 50 * kWindow, .delayed = 50 * kWindow}));
  EXPECT_TRUE(competition.observe({.ran = 10 * kWindow, .delayed = 50 * kWindow}));
  EXPECT_FALSE(competition.observe({.ran = 60 * kWindow, .delayed = 50 * kWindow}));
}

TEST(SchedulerTimes, GrowAsThisThreadRuns) {
  const SchedulerTimes before = scheduler_times();
  if (before.ran == 0) GTEST_SKIP() << "this kernel has no schedstat";
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < end) continue;
  const SchedulerTimes after = scheduler_times();
  EXPECT_GT(after.ran - before.ran + after.delayed - before.delayed, 100 * kMs);
}

TEST(WatchBarrierWaits, LeavesTheUsersChoiceAlone) {
  constexpr const char* kNames[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"};
  for (const char* const name : kNames) unsetenv(name);
  for (const char* const name : kNames) {
    setenv(name, "1000", 1);
    EXPECT_FALSE(watch_barrier_waits()) << name;
    unsetenv(name);
  }
  EXPECT_TRUE(watch_barrier_waits());
  EXPECT_TRUE(watch_barrier_waits());
}

}  // namespace
}  // namespace lacuna
