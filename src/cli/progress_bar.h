#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lacuna {

/// How far a verb is through its lines: drawn on stderr, if that is a terminal, a few times a second.
class ProgressBar {
 public:
  /// `what` is what is being done; `quiet` draws nothing.
  ProgressBar(std::string what, int64_t total, bool quiet = false);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void add(int64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  int64_t total_, done_ = 0;
  bool is_drawn_;
  Clock::time_point begin_ = Clock::now(), last_ = {};
};

}  // namespace lacuna
