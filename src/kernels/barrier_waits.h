#pragma once

#include <cstdint>

namespace lacuna {

/// The time that threads of this process spent running, and ready to run while others had the CPUs, in nanoseconds.
struct SchedulerTimes {
  int64_t ran = 0, delayed = 0;
};

/// Reads the sum over the present threads from /proc; zeros where the kernel does not count it.
SchedulerTimes scheduler_times();

/// Decides from scheduler times whether other programs compete with this one for CPUs.
class Competition {
 public:
  /// Takes in the present times. Returns true if the process was delayed for more than a small share of the time since the last decision;
  /// repeats that decision while the process has hardly run since.
  bool observe(const SchedulerTimes& now);

 private:
  SchedulerTimes last_;
  bool is_met_ = false;
};

/// Keeps OpenMP's threads from spinning while other programs compete for the CPUs, by a thread in the background. Further calls do nothing.
/// Returns false, and does nothing, if the user has decided by OMP_WAIT_POLICY or GOMP_SPINCOUNT. For training: threads that sleep early
/// make regions as short as those of a sentence that is translated alone take several times as long. Call it after run_in_child(): a
/// child that is forked has the locks that the thread in the background holds at that moment.
///
/// At the end of a parallel region a thread of libgomp spins for some 20 ms before it sleeps until the others arrive: where another program
/// has taken a CPU, it keeps the thread that it waits for from running. With more OpenMP threads than CPUs it spins for microseconds
/// (GOMP_SPINCOUNT in libgomp's manual), so during competition this creates a team of further threads, which sleep.
bool watch_barrier_waits();

}  // namespace lacuna
