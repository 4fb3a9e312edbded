#include "base/resources.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

namespace lacuna {
namespace {

namespace fs = std::filesystem;

bool file_exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// Returns where version 2 is mounted: in the folder "unified" where version 1 has the place itself (systemd's hybrid layout), unless that
/// is a group's name.
fs::path version_2_mount(const fs::path& mounted) {
  const fs::path hybrid = mounted / "unified";
  return !file_exists(mounted / "cgroup.controllers") && file_exists(hybrid) ? hybrid : mounted;
}

/// Returns where `controller` is mounted, from a line "NUMBER:CONTROLLERS:GROUP"; version 2 names no controllers.
std::optional<fs::path> hierarchy_of(const std::string& controller, const std::string& controllers, const fs::path& mounted) {
  if (controllers.empty()) return version_2_mount(mounted);
  if (("," + controllers + ",").find("," + controller + ",") == std::string::npos) return {};
  return file_exists(mounted / controller) ? mounted / controller : mounted / controllers;
}

/// Returns the groups that may limit this process by `controller`: its own and those around it.
std::vector<fs::path> groups_with(const std::string& controller, const fs::path& groups, const fs::path& mounted) {
  std::vector<fs::path> found;
  std::ifstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto hierarchy = hierarchy_of(controller, line.substr(first + 1, second - first - 1), mounted);
    if (!hierarchy) continue;
    // In a container the group may have the name that the host sees, while it is mounted at the root.
    for (fs::path group = fs::path(line.substr(second + 1)).relative_path();; group = group.parent_path()) {
      found.push_back(*hierarchy / group);
      if (group.empty()) break;
    }
  }
  return found;
}

/// Returns the least limit of the groups; empty where none has one.
template <class Limit>
auto least_of(const std::vector<fs::path>& groups, const Limit& limit_of) {
  decltype(limit_of(fs::path())) least;
  for (const fs::path& group : groups)
    if (const auto limit = limit_of(group)) least = std::min(least.value_or(*limit), *limit);
  return least;
}

std::optional<double> next_number(std::istream& file) {
  double number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

/// CPU quota of one group, in version 2 ("max 100000" or "150000 100000" microseconds) or 1 (-1 = none).
std::optional<double> quota_of(const fs::path& group) {
  std::ifstream both(group / "cpu.max"), quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
  const auto quota = next_number(both ? both : quota_file), period = next_number(both ? both : period_file);
  return quota && period && *quota > 0 && *period > 0 ? std::optional(*quota / *period) : std::nullopt;
}

/// Memory left to one group, in version 2 (a limit may be "max") or 1 (no limit is a huge number). memory.high counts as a limit: a process
/// above it is not killed, but slowed down until it hardly moves.
std::optional<uint64_t> left_of(const fs::path& group) {
  const bool is_version_2 = file_exists(group / "memory.max");
  auto limit = number_in_file(group / (is_version_2 ? "memory.max" : "memory.limit_in_bytes"));
  if (const auto high = number_in_file(group / "memory.high")) limit = std::min(limit.value_or(*high), *high);
  const auto used = number_in_file(group / (is_version_2 ? "memory.current" : "memory.usage_in_bytes"));
  if (!limit || !used) return {};
  const auto idle = number_in_file(group / "memory.stat", is_version_2 ? "inactive_file" : "total_inactive_file");
  const uint64_t kept = *used - std::min(*used, idle.value_or(0));
  return *limit - std::min(*limit, kept);
}

constexpr int kMostThreads = 1024;

std::atomic<int> chosen_threads = 0;  // 0 = not set

/// The number of CPUs that the scheduler may give this process.
int cpus_of_affinity() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) return std::max(1, CPU_COUNT(&cpus));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));  // more CPUs than the set holds
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& groups, const fs::path& mounted) {
  return least_of(groups_with("cpu", groups, mounted), quota_of);
}

std::optional<uint64_t> memory_left(const fs::path& groups, const fs::path& mounted) {
  return least_of(groups_with("memory", groups, mounted), left_of);
}

std::optional<uint64_t> number_in_file(const fs::path& file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    if (!name.empty() && (!(words >> word) || word != name)) continue;
    uint64_t number = 0;
    if (words >> number) return number;
  }
  return {};
}

std::string host_name() {
  constexpr size_t kLongestName = 256;
  std::array<char, kLongestName> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "localhost";
}

int num_cpus() {
  const auto quota = cpu_quota();
  const int cpus = cpus_of_affinity();
  return quota ? std::clamp(static_cast<int>(std::min<double>(*quota, kMostThreads)), 1, cpus) : cpus;
}

int num_cores() {
  const char* const asked = std::getenv("OMP_NUM_THREADS");
  const int number = asked != nullptr ? std::atoi(asked) : 0;
  if (number > 0) return std::min(number, kMostThreads);
  return num_cpus();
}

int thread_count() {
  const int chosen = chosen_threads;
  return chosen > 0 ? chosen : num_cores();
}

void set_thread_count(int threads) {
  chosen_threads = threads;
}

}  // namespace lacuna
