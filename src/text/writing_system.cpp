#include "text/writing_system.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>

namespace lacuna {
namespace {

struct Range {
  uint32_t first, last;
};
/// Kana, and Han with its extension A; all have three bytes in UTF-8.
constexpr Range kRanges[] = {{0x3041, 0x30FF}, {0x3400, 0x4DBF}, {0x4E00, 0x9FFF}};

bool is_han_or_kana(uint32_t character) {
  for (const Range& range : kRanges)
    if (character >= range.first && character <= range.last) return true;
  return false;
}

struct Counts {
  int64_t characters = 0, han_or_kana = 0;

  /// Counts the characters of a line, except ASCII's that are neither letters nor digits.
  void add(const std::string& line) {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(line[i])); };
    for (size_t i = 0; i < line.size(); ++i) {
      const bool is_letter = std::isalnum(static_cast<int>(byte(i))) != 0 && byte(i) < 0x80, begins_character = byte(i) >= 0xC0;
      characters += is_letter || begins_character ? 1 : 0;
      if (byte(i) >> 4 == 0xE && i + 2 < line.size())
        han_or_kana += is_han_or_kana((byte(i) & 0xF) << 12 | (byte(i + 1) & 0x3F) << 6 | (byte(i + 2) & 0x3F)) ? 1 : 0;
    }
  }
};

}  // namespace

bool has_no_spaces_between_words(const std::vector<std::string>& lines) {
  Counts counts;
  for (const std::string& line : lines) counts.add(line);
  return 2 * counts.han_or_kana > counts.characters;
}

bool is_blank(std::string_view line) {
  constexpr std::string_view kBlanks[] = {" ", "\t", "\r", "\v", "\f", "\xC2\xA0", "\xE3\x80\x80"};  // U+00A0, U+3000
  while (!line.empty()) {
    const auto* const blank = std::find_if(std::begin(kBlanks), std::end(kBlanks), [&](auto one) { return line.starts_with(one); });
    if (blank == std::end(kBlanks)) return false;
    line.remove_prefix(blank->size());
  }
  return true;
}

}  // namespace lacuna
