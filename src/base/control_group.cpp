#include "base/control_group.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "base/number_in_file.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// Where version 2 stands: in its folder "unified" where version 1 has the place (the hybrid of systemd). A group may have that name, too.
fs::path second_version_in(const fs::path& mounted) {
  const fs::path beside_the_first = mounted / "unified";
  return !is_there(mounted / "cgroup.controllers") && is_there(beside_the_first) ? beside_the_first : mounted;
}

/// Where the hierarchy stands that limits by `controller`, from a line "NUMBER:CONTROLLERS:GROUP": version 2 has number 0 and names no
/// controllers.
std::optional<fs::path> hierarchy_of(const std::string& controller, const std::string& controllers, const fs::path& mounted) {
  if (controllers.empty()) return second_version_in(mounted);
  if (("," + controllers + ",").find("," + controller + ",") == std::string::npos) return {};
  return is_there(mounted / controller) ? mounted / controller : mounted / controllers;
}

/// The groups that may limit by `controller`: its own and those around it.
std::vector<fs::path> groups_with(const std::string& controller, const fs::path& groups, const fs::path& mounted) {
  std::vector<fs::path> found;
  std::ifstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto hierarchy = hierarchy_of(controller, line.substr(first + 1, second - first - 1), mounted);
    if (!hierarchy) continue;
    // In a container the group may be named as the machine outside sees it, while its own stands at the root.
    for (fs::path group = fs::path(line.substr(second + 1)).relative_path();; group = group.parent_path()) {
      found.push_back(*hierarchy / group);
      if (group.empty()) break;
    }
  }
  return found;
}

/// The least that `limit_of` says of a group; nothing where it says nothing of any.
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

/// Of one group, in version 2 ("max 100000" or "150000 100000" microseconds) or 1 (-1 = none).
std::optional<double> quota_of(const fs::path& group) {
  std::ifstream both(group / "cpu.max"), quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
  const auto quota = next_number(both ? both : quota_file), period = next_number(both ? both : period_file);
  return quota && period && *quota > 0 && *period > 0 ? std::optional(*quota / *period) : std::nullopt;
}

/// Of one group, in version 2 (a limit may be "max") or 1 (without one it is more than any machine has). Who is above memory.high is not
/// killed, but slowed down until it hardly moves.
std::optional<uint64_t> left_of(const fs::path& group) {
  const bool is_second = is_there(group / "memory.max");
  auto limit = number_in_file(group / (is_second ? "memory.max" : "memory.limit_in_bytes"));
  if (const auto high = number_in_file(group / "memory.high")) limit = std::min(limit.value_or(*high), *high);
  const auto used = number_in_file(group / (is_second ? "memory.current" : "memory.usage_in_bytes"));
  if (!limit || !used) return {};
  const auto idle = number_in_file(group / "memory.stat", is_second ? "inactive_file" : "total_inactive_file");
  const uint64_t kept = *used - std::min(*used, idle.value_or(0));
  return *limit - std::min(*limit, kept);
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& groups, const fs::path& mounted) {
  return least_of(groups_with("cpu", groups, mounted), quota_of);
}

std::optional<uint64_t> memory_left(const fs::path& groups, const fs::path& mounted) {
  return least_of(groups_with("memory", groups, mounted), left_of);
}

}  // namespace lacuna
