#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

/// What the control groups of this process allow it, as containers and batch jobs are limited: its own group and those around it, the least
/// of which counts. `groups` names its groups and `mounted` is where they stand, of version 1, 2 or both.
namespace lacuna {

/// CPUs whose time it may take (`docker run --cpus 1.5`); nothing without a quota.
std::optional<double> cpu_quota(const std::filesystem::path& groups = "/proc/self/cgroup",
                                const std::filesystem::path& mounted = "/sys/fs/cgroup");

/// Bytes that it may still take (`docker run --memory 4g`) without being killed or slowed down, with those of files that nobody has used
/// lately, which give way; nothing without a limit.
std::optional<uint64_t> memory_left(const std::filesystem::path& groups = "/proc/self/cgroup",
                                    const std::filesystem::path& mounted = "/sys/fs/cgroup");

}  // namespace lacuna
