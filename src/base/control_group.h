#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

/// Limits that Linux sets this process: by its control groups (containers, batch jobs) and in files of /proc. The group of the process and
/// those around it count, the least limit of them holds. `groups` is the file that names the groups and `mounted` where they are mounted,
/// of version 1, 2 or both.
namespace lacuna {

/// CPUs whose time the process may use (`docker run --cpus 1.5`); empty without a quota.
std::optional<double> cpu_quota(const std::filesystem::path& groups = "/proc/self/cgroup",
                                const std::filesystem::path& mounted = "/sys/fs/cgroup");

/// Bytes that the process may still allocate (`docker run --memory 4g`) without being killed or slowed down; the page cache of files not
/// used lately counts as free. Empty without a limit.
std::optional<uint64_t> memory_left(const std::filesystem::path& groups = "/proc/self/cgroup",
                                    const std::filesystem::path& mounted = "/sys/fs/cgroup");

/// Reads a number from a system file such as /proc/meminfo: the one behind `name`, or, if that is empty, the first one that begins a line.
/// Empty if there is no such file or number.
std::optional<uint64_t> number_in_file(const std::filesystem::path& file, const std::string& name = "");

}  // namespace lacuna
