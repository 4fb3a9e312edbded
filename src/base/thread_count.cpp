#include "base/thread_count.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/control_group.h"

namespace lacuna {
namespace {

constexpr int kMostThreads = 1024;

std::atomic<int> chosen_threads = 0;  // 0 = not set

/// The number of CPUs that the scheduler may give this process.
int cpus_of_affinity() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) return std::max(1, CPU_COUNT(&cpus));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));  // more CPUs than the set holds
}

int cores_of_process() {
  const auto quota = cpu_quota();
  const int cpus = cpus_of_affinity();
  return quota ? std::clamp(static_cast<int>(std::min<double>(*quota, kMostThreads)), 1, cpus) : cpus;
}

}  // namespace

int num_cores() {
  const char* const asked = std::getenv("OMP_NUM_THREADS");
  const int number = asked != nullptr ? std::atoi(asked) : 0;
  if (number > 0) return std::min(number, kMostThreads);
  return cores_of_process();
}

int thread_count() {
  const int chosen = chosen_threads;
  return chosen > 0 ? chosen : num_cores();
}

void set_thread_count(int threads) {
  chosen_threads = threads;
}

}  // namespace lacuna
