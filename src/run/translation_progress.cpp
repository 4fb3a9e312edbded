#include "run/translation_progress.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

/// True if translations may appear on the terminal, where a bar would stand among them.
bool output_may_be_seen(const std::string& output) {
  struct stat status = {};
  return output == "-" && !(fstat(STDOUT_FILENO, &status) == 0 && S_ISREG(status.st_mode));
}

}  // namespace

TranslationProgress::TranslationProgress(const std::string& input, const std::string& output, bool quiet)
    : is_told_(!quiet && stderr_is_terminal()), bar_(0, quiet || output_may_be_seen(output)) {
  if (is_told_ && input == "-" && isatty(STDIN_FILENO) == 1) log_info("ready: one sentence a line; Ctrl-D ends");
}

void TranslationProgress::begin(int64_t lines, const LineReader& reader) {
  window_lines_ = lines;
  window_done_ = 0;
  window_share_ = reader.share_read();
  window_begin_ = Clock::now();
}

void TranslationProgress::add_sentence() {
  const std::lock_guard lock(mutex_);
  ++window_done_;
  if (!bar_.is_due()) return;
  const double of_window = static_cast<double>(window_done_) / static_cast<double>(window_lines_);
  const int64_t lines = lines_ + window_done_;
  bar_.draw(share_ + of_window * (window_share_ - share_),
            fmt::format("{}, {:.1f} lines/s", counted(lines, "line"), static_cast<double>(lines) / seconds()));
}

void TranslationProgress::end(const std::vector<TranslatedLine>& translated) {
  bar_.hide();
  seconds_ = seconds();
  lines_ += window_lines_;
  share_ = window_share_;
  for (const TranslatedLine& line : translated) tokens_ += std::ssize(line.translations.front().tokens);
}

void TranslationProgress::finish() const {
  if (!is_told_) return;
  log_info("translated {} in {:.1f} s: {:.1f} lines/s, {:.0f} tokens/s", counted(lines_, "line"), seconds_,
           static_cast<double>(lines_) / seconds_, static_cast<double>(tokens_) / seconds_);
}

}  // namespace lacuna
