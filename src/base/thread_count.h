#pragma once

#include <filesystem>
#include <optional>

namespace lacuna {

/// CPUs whose time the control groups of this process may take, as containers and batch jobs are limited (`docker run --cpus 1.5`): the
/// least of its own group's quota and of those around it; nothing without one. `groups` names its groups and `mounted` is where they
/// stand, of version 1 or 2.
std::optional<double> cpu_quota(const std::filesystem::path& groups = "/proc/self/cgroup",
                                const std::filesystem::path& mounted = "/sys/fs/cgroup");

/// What OMP_NUM_THREADS asks for, else the CPUs that this process may run on (its affinity: taskset, cpusets), and no more than the whole
/// ones of its quota.
int num_cores();

/// Threads that the program may use: num_cores(), until another number is chosen (`threads`). For code without LibTorch; tensor operations
/// have LibTorch's own number (cli/common_flags.h sets both).
int thread_count();
void set_thread_count(int threads);

}  // namespace lacuna
