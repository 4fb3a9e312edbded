#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

/// The CPUs and the memory that this process may use, and the host that has them. Limits are those of Linux: control groups (containers,
/// batch jobs), of version 1, 2 or both, and files of /proc. The process's group and those around it count; the least limit holds.
namespace lacuna {

/// Returns OMP_NUM_THREADS if it is set, else the number of CPUs that this process may run on (its affinity: taskset, cpusets), at most the
/// whole CPUs of its quota.
int num_cores();

/// Returns what num_cores() does where OMP_NUM_THREADS is not set.
int num_cpus();

/// Returns the host's name; "localhost" if it has none.
std::string host_name();

/// Returns the number of threads that code without LibTorch may use: num_cores() unless set_thread_count was called. LibTorch keeps a
/// number of its own for tensor operations; cli/common_flags.h sets both.
int thread_count();
void set_thread_count(int threads);

/// CPUs whose time the process may use (`docker run --cpus 1.5`); empty without a quota. `groups` is the file that names the groups and
/// `mounted` where they are mounted.
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
