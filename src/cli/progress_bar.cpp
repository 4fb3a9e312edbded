#include "cli/progress_bar.h"

#include <algorithm>
#include <cstdio>

#include "base/log.h"

namespace lacuna {

ProgressBar::ProgressBar(std::string what, int64_t total, bool quiet)
    : what_(std::move(what)), total_(std::max<int64_t>(total, 1)), is_drawn_(!quiet && stderr_is_terminal()) {}

ProgressBar::~ProgressBar() {
  if (is_drawn_) std::fputs("\r\x1b[K", stderr);
}

void ProgressBar::add(int64_t done) {
  done_ += done;
  const auto now = Clock::now();
  if (!is_drawn_ || now - last_ < std::chrono::milliseconds(200)) return;
  last_ = now;
  constexpr int kWidth = 30;
  const double share = std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
  std::string bar(static_cast<size_t>(kWidth * share), '#');
  bar.resize(kWidth, '.');
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const std::string left = share > 0 ? fmt::format(", {:.0f} s left", seconds / share * (1 - share)) : "";
  std::fputs(fmt::format("\r{} [{}] {} of {}{}\x1b[K", what_, bar, done_, total_, left).c_str(), stderr);
}

}  // namespace lacuna
