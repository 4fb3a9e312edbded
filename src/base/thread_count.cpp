#include "base/thread_count.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr int kMostThreads = 1024;

std::atomic<int> chosen_threads = 0;  // 0: nobody has chosen

std::optional<double> number_in(std::istream& file) {
  double number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

/// Of one group, in version 2 ("max 100000" or "150000 100000" microseconds) or 1 (-1 = none).
std::optional<double> quota_of(const fs::path& group) {
  std::ifstream both(group / "cpu.max"), quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
  const auto quota = number_in(both ? both : quota_file), period = number_in(both ? both : period_file);
  return quota && period && *quota > 0 && *period > 0 ? std::optional(*quota / *period) : std::nullopt;
}

/// Where the hierarchy stands that limits CPUs, from a line "NUMBER:CONTROLLERS:GROUP": version 2 has number 0 and names no controllers.
std::optional<fs::path> cpu_hierarchy(const std::string& controllers, const fs::path& mounted) {
  if (controllers.empty()) return mounted;
  if (("," + controllers + ",").find(",cpu,") == std::string::npos) return {};
  return fs::exists(mounted / "cpu") ? mounted / "cpu" : mounted / controllers;
}

/// CPUs that the scheduler may give this process.
int cpus_of_affinity() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) return std::max(1, CPU_COUNT(&cpus));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));  // more CPUs than the set holds
}

int cores_of_process() {
  const auto quota = cpu_quota();
  const int cpus = cpus_of_affinity();
  return quota ? std::clamp(static_cast<int>(std::min<double>(*quota, kMostThreads)), 1, cpus) : cpus;
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& groups, const fs::path& mounted) {
  std::optional<double> least;
  std::ifstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto hierarchy = cpu_hierarchy(line.substr(first + 1, second - first - 1), mounted);
    if (!hierarchy) continue;
    // In a container the group may be named as the machine outside sees it, while its own stands at the root.
    for (fs::path group = fs::path(line.substr(second + 1)).relative_path();; group = group.parent_path()) {
      if (const auto quota = quota_of(*hierarchy / group)) least = std::min(least.value_or(*quota), *quota);
      if (group.empty()) break;
    }
  }
  return least;
}

int num_cores() {
  const char* const asked = std::getenv("OMP_NUM_THREADS");
  const int number = asked != nullptr ? std::atoi(asked) : 0;
  if (number > 0) return std::min(number, kMostThreads);
  return cores_of_process();
}

int thread_count() {
  const int chosen = chosen_threads;
  return chosen > 0 ? chosen : num_cores();
}

void set_thread_count(int threads) {
  chosen_threads = threads;
}

}  // namespace lacuna
