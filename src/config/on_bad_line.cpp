#include "config/on_bad_line.h"

#include <spdlog/fmt/fmt.h>

#include "base/log.h"
#include "base/spelling.h"

namespace lacuna {

void pass_over(const LineError& error, OnBadLine bad_lines, const std::string& remedy) {
  if (bad_lines == OnBadLine::kStop) throw LineError(error.kind(), error.what() + remedy);
  log_warning("{} (passed over)", error.what());
}

bool next_good_line(LineReader& reader, std::string& line, OnBadLine bad_lines, int64_t& passed_over, const std::string& remedy) {
  for (;;) {
    try {
      return reader.next_clean(line);
    } catch (const LineError& error) {
      pass_over(error, bad_lines, remedy);
      ++passed_over;
    }
  }
}

std::string why_none_is_left(int64_t bad_lines, int64_t lines, const std::string& unfit) {
  if (lines == 0) return "there is no line";
  if (bad_lines == lines) return "none of " + counted(lines, "line") + " could be taken";
  if (bad_lines == 0) return "all are " + unfit;
  return fmt::format("{} of {} could not be taken, and all others are {}", bad_lines, counted(lines, "line"), unfit);
}

}  // namespace lacuna
