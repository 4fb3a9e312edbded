#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lacuna {

/// A bar on stderr with words and the time that is left behind it: drawn a few times a second, if stderr is a terminal.
class ProgressBar {
 public:
  /// `done` is the share of the work that was done before: the time that is left is told from the rest. `quiet` draws nothing.
  explicit ProgressBar(double done = 0, bool quiet = false);
  ~ProgressBar() { hide(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// True if it is time to draw it.
  bool is_due() const;
  /// `done` is the share of the work that is done now.
  void draw(double done, const std::string& words);
  /// Clears its line for others.
  void hide();

 private:
  using Clock = std::chrono::steady_clock;

  std::string time_left(double done) const;

  double done_at_begin_;
  bool is_drawn_, is_shown_ = false;
  Clock::time_point begin_ = Clock::now(), last_ = {};
};

/// How far a verb is through its lines.
class LineProgress {
 public:
  /// `what` is what is being done; `quiet` draws nothing.
  LineProgress(std::string what, int64_t total, bool quiet = false);

  void add(int64_t lines);
  /// Clears its line for others.
  void hide() { bar_.hide(); }

 private:
  std::string what_;
  int64_t total_, done_ = 0;
  ProgressBar bar_;
};

}  // namespace lacuna
