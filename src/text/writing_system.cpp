#include "text/writing_system.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <map>

namespace lacuna {
namespace {

/// Letters of languages that put no spaces between words; all have three bytes in UTF-8.
struct Script {
  uint32_t first, last;
  const char* languages;  ///< their codes
};
constexpr const char* kHanOrKana = "zh or ja";
constexpr Script kScripts[] = {{0x3041, 0x30FF, kHanOrKana}, {0x3400, 0x4DBF, kHanOrKana}, {0x4E00, 0x9FFF, kHanOrKana},
                               {0x0E00, 0x0E7F, "th"},       {0x0E80, 0x0EFF, "lo"},       {0x0F00, 0x0FFF, "bo or dz"},
                               {0x1000, 0x109F, "my"},       {0x1780, 0x17FF, "km"}};

struct Counts {
  int64_t characters = 0;
  std::map<std::string, int64_t> of_languages;

  /// Counts the characters of a line, except ASCII's that are neither letters nor digits.
  void add(const std::string& line) {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(line[i])); };
    for (size_t i = 0; i < line.size(); ++i) {
      const bool is_letter = std::isalnum(static_cast<int>(byte(i))) != 0 && byte(i) < 0x80, begins_character = byte(i) >= 0xC0;
      characters += is_letter || begins_character ? 1 : 0;
      if (byte(i) >> 4 == 0xE && i + 2 < line.size()) count((byte(i) & 0xF) << 12 | (byte(i + 1) & 0x3F) << 6 | (byte(i + 2) & 0x3F));
    }
  }

 private:
  void count(uint32_t character) {
    for (const Script& script : kScripts)
      if (character >= script.first && character <= script.last) ++of_languages[script.languages];
  }
};

}  // namespace

std::string languages_without_spaces(const std::vector<std::string>& lines) {
  Counts counts;
  for (const std::string& line : lines) counts.add(line);
  for (const auto& [languages, count] : counts.of_languages)
    if (2 * count > counts.characters) return languages;
  return "";
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
