#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

namespace lacuna {

namespace detail {
inline std::atomic<int> chosen_threads = 0;  // 0: nobody has chosen
}

/// What OMP_NUM_THREADS asks for, else all cores.
inline int num_cores() {
  const char* const asked = std::getenv("OMP_NUM_THREADS");
  const int number = asked != nullptr ? std::atoi(asked) : 0;
  return number > 0 ? std::min(number, 1024) : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Threads that the program may use: num_cores(), until another number is chosen (`threads`). For code without LibTorch; tensor operations
/// have LibTorch's own number (cli/common_flags.h sets both).
inline int thread_count() {
  const int chosen = detail::chosen_threads;
  return chosen > 0 ? chosen : num_cores();
}
inline void set_thread_count(int threads) {
  detail::chosen_threads = threads;
}

}  // namespace lacuna
