#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

#include "base/line_reader.h"
#include "base/progress_bar.h"
#include "search/translator.h"

namespace lacuna {

/// What `lacuna translate` tells a person at a terminal: that it waits for sentences to be typed, a progress bar, and a
/// closing line.
class TranslationProgress {
 public:
  /// `input` and `output` are the paths that the verb was given. Nothing is told if `quiet`, or if stderr is no
  /// terminal.
  TranslationProgress(const std::string& input, const std::string& output, bool quiet);

  /// Begins a window of lines that were read; the bar goes by the share of the input's bytes.
  void begin(int64_t lines, const LineReader& reader);
  /// Counts a sentence of the window as translated. Any thread may call it.
  void add_sentence();
  /// Ends the window, and clears the bar's line for other output.
  void end(const std::vector<TranslatedLine>& translated);
  /// Prints how many lines and tokens were translated, and how fast, without the time in which sentences were waited for.
  void finish() const;

 private:
  using Clock = std::chrono::steady_clock;

  double seconds() const { return seconds_ + std::chrono::duration<double>(Clock::now() - window_begin_).count(); }

  bool is_told_;
  std::mutex mutex_;
  int64_t lines_ = 0, window_lines_ = 0, window_done_ = 0, tokens_ = 0;
  double share_ = 0, window_share_ = 0;  ///< shares of the input before the window, and with it
  double seconds_ = 0;                   ///< spent on the windows before
  Clock::time_point window_begin_;
  ProgressBar bar_;
};

}  // namespace lacuna
