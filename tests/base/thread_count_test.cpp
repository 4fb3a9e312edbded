#include "base/thread_count.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>

namespace lacuna {
namespace {

TEST(ThreadCount, IsOfTheCpusThatTheProcessMayRunOn) {
  unsetenv("OMP_NUM_THREADS");
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(num_cores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

TEST(ThreadCount, IsWhatTheEnvironmentAsksFor) {
  setenv("OMP_NUM_THREADS", "3", 1);
  EXPECT_EQ(num_cores(), 3);
  setenv("OMP_NUM_THREADS", "1000000", 1);
  EXPECT_EQ(num_cores(), 1024);
  setenv("OMP_NUM_THREADS", "0", 1);
  EXPECT_GE(num_cores(), 1);
  unsetenv("OMP_NUM_THREADS");
}

}  // namespace
}  // namespace lacuna
