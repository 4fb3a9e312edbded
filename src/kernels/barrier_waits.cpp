#include "kernels/barrier_waits.h"

#include <omp.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <semaphore>
#include <thread>

namespace lacuna {
namespace {

/// A team of sleeping threads: while it lives, there are more OpenMP threads than CPUs.
class SleepingTeam {
 public:
  SleepingTeam() : leader_([this] { lead(); }) {}
  ~SleepingTeam() {
    end_.release();
    leader_.join();
  }
  SleepingTeam(const SleepingTeam&) = delete;
  SleepingTeam& operator=(const SleepingTeam&) = delete;

 private:
  void lead() {
    const int threads = omp_get_num_procs() + 1;
#pragma omp parallel num_threads(threads)
    asm volatile("");  // or the region would be optimized away. The others now wait for the leader's next region
    end_.acquire();
  }

  std::binary_semaphore end_{0};
  std::thread leader_;
};

/// Creates the team at the first sign of competition, and removes it after a time without one. That time is long, for a process whose
/// threads sleep early is hardly delayed by others. Alone, no team is made: sleeping early makes short regions several times slower.
void watch() {
  using std::chrono::milliseconds;
  constexpr milliseconds kInterval(50), kCalm(10'000);
  Competition competition;
  competition.observe(scheduler_times());
  std::unique_ptr<SleepingTeam> team;
  for (milliseconds calm(0);; std::this_thread::sleep_for(kInterval)) {
    const bool is_met = competition.observe(scheduler_times());
    calm = is_met ? milliseconds(0) : calm + kInterval;
    if (calm > kCalm) team.reset();
    if (is_met && team == nullptr) team = std::make_unique<SleepingTeam>();
  }
}

/// Starts the watching thread with all signals blocked, so that they interrupt the thread that waits for them.
void start_watch() {
  sigset_t all, former;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  std::thread(watch).detach();
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

}  // namespace

SchedulerTimes scheduler_times() {
  SchedulerTimes sum;
  std::error_code ignored;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    SchedulerTimes times;
    if (std::ifstream file(thread.path() / "schedstat"); file >> times.ran >> times.delayed) {  // or the thread has ended
      sum.ran += times.ran;
      sum.delayed += times.delayed;
    }
  }
  return sum;
}

bool Competition::observe(const SchedulerTimes& now) {
  constexpr int64_t kEnough = 1'000'000'000;  // nanoseconds; in less, the process's own threads may have met each other
  constexpr double kSmallShare = 0.1;
  const int64_t ran = now.ran - last_.ran, delayed = now.delayed - last_.delayed;
  const bool has_lost_threads = ran < 0 || delayed < 0;  // their times are gone from the sums
  if (has_lost_threads || ran + delayed >= kEnough) last_ = now;
  if (!has_lost_threads && ran + delayed >= kEnough)
    is_met_ = static_cast<double>(delayed) > kSmallShare * static_cast<double>(ran + delayed);
  return is_met_;
}

bool watch_barrier_waits() {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return false;
  static const bool is_started = (start_watch(), true);
  return is_started;
}

}  // namespace lacuna
