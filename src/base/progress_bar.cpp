#include "base/progress_bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/log.h"

namespace lacuna {
namespace {

/// Columns of the terminal that stderr is now, for it may be resized at any time.
size_t terminal_columns() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

ProgressBar::ProgressBar(double done, bool quiet) : done_at_begin_(done), is_drawn_(!quiet && stderr_is_terminal()) {}

void ProgressBar::draw(double done, const std::string& words) {
  if (!is_drawn_) return;
  last_ = Clock::now();
  const size_t columns = terminal_columns() - 1;  // in the last column some terminals wrap
  std::string line = "\r";
  line.append(progress_line(done, words + time_left(done), columns)).append("\x1b[K");
  std::fputs(line.c_str(), stderr);
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

std::string progress_line(double done, const std::string& text, size_t columns) {
  constexpr size_t kWidest = 30, kNarrowest = 10, kFrame = 3;  // "[", "] "
  const size_t room = columns > text.size() + kFrame ? columns - text.size() - kFrame : 0, width = std::min(kWidest, room);
  if (text.size() > columns) {  // without its last parts
    const size_t end = columns == 0 ? 0 : text.rfind(", ", columns);
    return text.substr(0, std::min(end, columns));
  }
  if (done <= 0 || width < kNarrowest) return text;
  std::string bar(static_cast<size_t>(static_cast<double>(width) * std::min(done, 1.0)), '#');
  bar.resize(width, '.');
  return fmt::format("[{}] {}", bar, text);
}

LineProgress::LineProgress(std::string what, int64_t total, bool quiet)
    : what_(std::move(what)), total_(std::max<int64_t>(total, 1)), bar_(0, quiet) {}

void LineProgress::add(int64_t lines) {
  done_ += lines;
  if (!bar_.is_due()) return;
  bar_.draw(static_cast<double>(done_) / static_cast<double>(total_), fmt::format("{}, {} of {}", what_, done_, total_));
}

}  // namespace lacuna
