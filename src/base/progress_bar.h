#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lacuna {

/// A bar on stderr, followed by words and the time left, cut to the terminal's width. Drawn if stderr is a terminal.
class ProgressBar {
 public:
  /// `done` is the share that was done before, on which the time left does not count. Nothing is drawn if `quiet`.
  explicit ProgressBar(double done = 0, bool quiet = false);
  ~ProgressBar() { hide(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Returns true if it is time to draw the bar again.
  bool is_due() const { return is_drawn_ && Clock::now() - last_ >= std::chrono::milliseconds(200); }
  /// Draws the bar; `done` is the share of the work that is done now. A share of 0 draws the words alone.
  void draw(double done, const std::string& words);
  /// Clears the bar's line, for other output.
  void hide();

 private:
  using Clock = std::chrono::steady_clock;

  std::string time_left(double done) const;

  double done_at_begin_;
  bool is_drawn_, is_shown_ = false;
  Clock::time_point begin_ = Clock::now(), last_ = {};
};

/// Returns one line of at most `columns` characters: a bar of up to 30 characters if there is room for at least ten, then the
/// text. A text that is too long loses the last of its parts, which ", " separates. There is no bar if `done`, a share, is 0.
std::string progress_line(double done, const std::string& text, size_t columns);

/// A progress bar of a verb that works through a known number of lines.
class LineProgress {
 public:
  /// `what` is what is being done; `quiet` draws nothing.
  LineProgress(std::string what, int64_t total, bool quiet = false);

  void add(int64_t lines);
  /// Clears the bar's line, for other output.
  void hide() { bar_.hide(); }

 private:
  std::string what_;
  int64_t total_, done_ = 0;
  ProgressBar bar_;
};

}  // namespace lacuna
