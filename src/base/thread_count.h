#pragma once

namespace lacuna {

/// What OMP_NUM_THREADS asks for, else the CPUs that this process may run on (its affinity: taskset, cpusets), and no more than the whole
/// ones of its quota (control_group.h).
int num_cores();

/// Threads that the program may use: num_cores(), until another number is chosen (`threads`). For code without LibTorch; tensor operations
/// have LibTorch's own number (cli/common_flags.h sets both).
int thread_count();
void set_thread_count(int threads);

}  // namespace lacuna
