#pragma once

#include <chrono>

namespace lacuna {

/// Seconds since it was made, by a clock that is never set.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace lacuna
