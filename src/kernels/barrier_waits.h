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
/// Returns false, and does nothing, if the user has decided by OMP_WAIT_POLICY or GOMP_SPINCOUNT.
///
/// At the end of a parallel region libgomp lets a thread spin for some 20 ms, by default, before it sleeps until the others arrive. That is
/// fastest while each thread has a CPU; where another program has taken one, the spinning thread keeps the one that it waits for from
/// running. libgomp cuts the spinning to microseconds while there are more OpenMP threads than CPUs (GOMP_SPINCOUNT in its manual). So
/// during competition this creates a team of further threads, which sleep. It is for training: in regions as short as those of a
/// sentence that is translated alone, threads that sleep early take several times as long.
bool watch_barrier_waits();

}  // namespace lacuna
