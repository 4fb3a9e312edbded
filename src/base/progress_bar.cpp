#include "base/progress_bar.h"

#include <algorithm>
#include <cstdio>

#include "base/log.h"

namespace lacuna {

ProgressBar::ProgressBar(double done, bool quiet) : done_at_begin_(done), is_drawn_(!quiet && stderr_is_terminal()) {}

bool ProgressBar::is_due() const {
  return is_drawn_ && Clock::now() - last_ >= std::chrono::milliseconds(200);
}

void ProgressBar::draw(double done, const std::string& words) {
  if (!is_drawn_) return;
  last_ = Clock::now();
  constexpr int kWidth = 30;
  std::string bar(static_cast<size_t>(kWidth * done), '#');
  bar.resize(kWidth, '.');
  std::fputs(fmt::format("\r[{}] {}{}\x1b[K", bar, words, time_left(done)).c_str(), stderr);
  is_shown_ = true;
}

void ProgressBar::hide() {
  if (is_shown_) std::fputs("\r\x1b[K", stderr);
  is_shown_ = false;
}

std::string ProgressBar::time_left(double done) const {
  const double done_here = done - done_at_begin_;
  if (done_here <= 0) return "";
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  const auto left = static_cast<int64_t>(seconds / done_here * (1 - done));
  return fmt::format(", {}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
}

LineProgress::LineProgress(std::string what, int64_t total, bool quiet)
    : what_(std::move(what)), total_(std::max<int64_t>(total, 1)), bar_(0, quiet) {}

void LineProgress::add(int64_t lines) {
  done_ += lines;
  if (!bar_.is_due()) return;
  const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  bar_.draw(share, fmt::format("{}, {} of {}", what_, done_, total_));
}

}  // namespace lacuna
