#include "base/thread_count.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>

#include "scratch_folder.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Files as control groups have them.
class CpuQuota : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((folder_.path() / file).parent_path());
    folder_.write(file, text);
  }
  std::optional<double> quota() const { return cpu_quota(folder_ / "groups", folder_ / "mounted"); }

 private:
  const ScratchFolder folder_;
};

TEST_F(CpuQuota, IsThatOfTheGroup) {
  write("groups", "0::/jobs/1\n");
  write("mounted/jobs/1/cpu.max", "250000 100000\n");
  EXPECT_EQ(quota(), 2.5);
}

TEST_F(CpuQuota, IsTheLeastOfTheGroupsAround) {
  write("groups", "0::/jobs/1\n");
  write("mounted/jobs/1/cpu.max", "max 100000\n");
  write("mounted/jobs/cpu.max", "300000 100000\n");
  write("mounted/cpu.max", "800000 100000\n");
  EXPECT_EQ(quota(), 3);
}

TEST_F(CpuQuota, IsOfTheRootInAContainerThatKnowsItsNameOutside) {
  write("groups", "0::/system.slice/docker-0123.scope\n");
  write("mounted/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(CpuQuota, IsReadOfVersionOneToo) {
  write("groups", "9:name=systemd:/\n4:cpuset:/other\n2:cpu,cpuacct:/docker/0123\n0::/\n");
  write("mounted/cpu,cpuacct/docker/0123/cpu.cfs_quota_us", "400000\n");
  write("mounted/cpu,cpuacct/docker/0123/cpu.cfs_period_us", "200000\n");
  write("mounted/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("mounted/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 2);
}

TEST_F(CpuQuota, IsNotThereWithoutALimit) {
  EXPECT_EQ(quota(), std::nullopt);
  write("groups", "0::/\nnot a group\n5:cpuset:/\n");
  EXPECT_EQ(quota(), std::nullopt);
  for (const char* text : {"max 100000\n", "", "100000\n", "-1 100000\n", "100000 0\n", "many\n"}) {
    write("mounted/cpu.max", text);
    EXPECT_EQ(quota(), std::nullopt) << text;
  }
}

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
