#pragma once

#include <string>

namespace lacuna {

/// Counts occurrences of `part` in `text`.
inline size_t count_text(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace lacuna
