#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "search/translator.h"

namespace lacuna::serve {

/// A text whose lines are translated, each for itself. Line breaks, and lines of nothing but white space, stay what they are.
class TextLines {
 public:
  explicit TextLines(const std::string& text);

  /// Appends the lines to be translated.
  void append_to(std::vector<TranslationInput>& lines) const;
  /// Returns how many they are.
  size_t size() const { return num_lines_; }
  /// Returns the text made of the translations of its lines; `rank` 0 = the best. A line with fewer has its best.
  std::string joined(const std::vector<TranslatedLine>& translated, size_t first, size_t rank) const;

 private:
  struct Part {
    std::string text;
    bool is_line;
  };
  std::vector<Part> parts_;
  size_t num_lines_ = 0;
};

}  // namespace lacuna::serve
