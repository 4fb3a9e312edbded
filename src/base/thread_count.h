#pragma once

namespace lacuna {

/// Returns OMP_NUM_THREADS if it is set, else the number of CPUs that this process may run on (its affinity: taskset, cpusets), at most the
/// whole CPUs of its quota (control_group.h).
int num_cores();

/// Returns the number of threads that code without LibTorch may use: num_cores() unless set_thread_count was called. LibTorch keeps a
/// number of its own for tensor operations; cli/common_flags.h sets both.
int thread_count();
void set_thread_count(int threads);

}  // namespace lacuna
