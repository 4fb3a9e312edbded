#include "config/on_bad_line.h"

#include "base/log.h"

namespace lacuna {

void pass_over(const LineError& error, OnBadLine bad_lines, const std::string& remedy) {
  if (bad_lines == OnBadLine::kStop) throw LineError(error.kind(), error.what() + remedy);
  log_warning("{} (passed over)", error.what());
}

bool next_good_line(LineReader& reader, std::string& line, OnBadLine bad_lines, int64_t& passed_over, const std::string& remedy) {
  for (;;) {
    try {
      if (!reader.next(line)) return false;
      reader.require_clean(line);
      return true;
    } catch (const LineError& error) {
      pass_over(error, bad_lines, remedy);
      ++passed_over;
    }
  }
}

}  // namespace lacuna
