#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/line_reader.h"

namespace lacuna {

/// Lines of text that cannot be taken, counted by kind.
struct BadLines {
  struct Kind {
    int64_t lines = 0;
    std::string first;  ///< what is wrong with the first one, with its file and number
  };
  std::map<std::string, Kind> kinds;  ///< by LineError::kind()

  void add(const LineError& error);
  BadLines& operator+=(const BadLines& other);
  int64_t count() const;
  /// Lists the kinds: "9 not UTF-8 (the first: train.de:3: byte 4 is not UTF-8; ...), 5 with NUL bytes (...)".
  std::string text() const;
};

/// Returns a line of a file of rejects: what is wrong, a tab, and how the line begins. Control characters, backslashes and what is not
/// UTF-8 are written as \xNN, so that it is one line of UTF-8.
std::string reject_line(const LineError& error, std::string_view line);

}  // namespace lacuna
