#include "base/resources.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>

#include "scratch_folder.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Files as control groups have them.
class ControlGroups : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((folder_.path() / file).parent_path());
    folder_.write(file, text);
  }
  std::optional<double> quota() const { return cpu_quota(folder_ / "groups", folder_ / "mounted"); }

  std::optional<uint64_t> left() const { return memory_left(folder_ / "groups", folder_ / "mounted"); }

 private:
  const ScratchFolder folder_;
};

using CpuQuota = ControlGroups;
using MemoryLeft = ControlGroups;

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

TEST_F(CpuQuota, IsTheLeastOfBothVersions) {
  write("groups", "2:cpu,cpuacct:/jobs\n0::/jobs/1\n");
  write("mounted/unified/jobs/1/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  write("mounted/cpu,cpuacct/jobs/cpu.cfs_quota_us", "100000\n");
  write("mounted/cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 1);
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

TEST_F(MemoryLeft, IsTheLimitWithoutWhatIsUsed) {
  write("groups", "0::/jobs/1\n");
  write("mounted/jobs/1/memory.max", "1000\n");
  write("mounted/jobs/1/memory.current", "400\n");
  EXPECT_EQ(left(), 600u);
  write("mounted/jobs/1/memory.current", "1001\n");
  EXPECT_EQ(left(), 0u);
}

TEST_F(MemoryLeft, IsTheLeastOfTheGroupsAround) {
  write("groups", "0::/jobs/1\n");
  write("mounted/jobs/1/memory.max", "max\n");
  write("mounted/jobs/1/memory.current", "100\n");
  write("mounted/jobs/memory.max", "1000\n");
  write("mounted/jobs/memory.current", "700\n");
  write("mounted/memory.max", "5000\n");
  write("mounted/memory.current", "900\n");
  EXPECT_EQ(left(), 300u);
}

TEST_F(MemoryLeft, CountsPagesOfFilesThatGiveWay) {
  write("groups", "0::/\n");
  write("mounted/memory.max", "1000\n");
  write("mounted/memory.current", "900\n");
  write("mounted/memory.stat", "anon 500\nfile 400\nactive_file 100\ninactive_file 300\n");
  EXPECT_EQ(left(), 400u);
}

TEST_F(MemoryLeft, IsReadOfVersionOneToo) {
  write("groups", "4:memory:/docker/0123\n2:cpu,cpuacct:/docker/0123\n0::/\n");
  write("mounted/memory/docker/0123/memory.limit_in_bytes", "9223372036854771712\n");
  write("mounted/memory/docker/0123/memory.usage_in_bytes", "500\n");
  EXPECT_EQ(left(), 9223372036854771212u);
  write("mounted/memory/memory.limit_in_bytes", "2000\n");
  write("mounted/memory/memory.usage_in_bytes", "700\n");
  write("mounted/memory/memory.stat", "inactive_file 5\ntotal_inactive_file 200\n");
  EXPECT_EQ(left(), 1500u);
}

TEST_F(MemoryLeft, IsTheLeastOfBothVersions) {
  write("groups", "4:memory:/jobs\n1:name=systemd:/jobs/1\n0::/jobs/1\n");
  write("mounted/memory/jobs/memory.limit_in_bytes", "9223372036854771712\n");
  write("mounted/memory/jobs/memory.usage_in_bytes", "500\n");
  write("mounted/unified/jobs/memory.max", "1000\n");
  write("mounted/unified/jobs/memory.current", "400\n");
  EXPECT_EQ(left(), 600u);
  write("mounted/memory/jobs/memory.limit_in_bytes", "800\n");
  EXPECT_EQ(left(), 300u);
}

TEST_F(MemoryLeft, IsReadOfVersionTwoAloneWithAGroupNamedUnified) {
  write("groups", "0::/jobs\n");
  write("mounted/cgroup.controllers", "cpu memory\n");
  write("mounted/unified/memory.max", "100\n");
  write("mounted/unified/memory.current", "90\n");
  write("mounted/jobs/memory.max", "1000\n");
  write("mounted/jobs/memory.current", "400\n");
  EXPECT_EQ(left(), 600u);
}

TEST_F(MemoryLeft, EndsWhereTheGroupIsSlowedDown) {
  write("groups", "0::/jobs\n");
  write("mounted/jobs/memory.max", "1000\n");
  write("mounted/jobs/memory.high", "max\n");
  write("mounted/jobs/memory.current", "400\n");
  EXPECT_EQ(left(), 600u);
  write("mounted/jobs/memory.high", "700\n");
  EXPECT_EQ(left(), 300u);
  write("mounted/jobs/memory.max", "max\n");
  EXPECT_EQ(left(), 300u);
  write("mounted/jobs/memory.max", "600\n");
  EXPECT_EQ(left(), 200u);
  write("mounted/jobs/memory.high", "300\n");  // it may be above it
  EXPECT_EQ(left(), 0u);
}

TEST_F(MemoryLeft, IsNotThereWithoutALimit) {
  EXPECT_EQ(left(), std::nullopt);
  write("groups", "0::/\nnot a group\n5:cpu:/\n");
  EXPECT_EQ(left(), std::nullopt);
  write("mounted/memory.current", "100\n");
  for (const char* text : {"max\n", "", "much\n"}) {
    write("mounted/memory.max", text);
    EXPECT_EQ(left(), std::nullopt) << text;
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
