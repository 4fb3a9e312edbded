#include "text/invisible_characters.h"

#include <cstdint>

#include "text/vocabulary.h"

namespace lacuna {
namespace {

struct Range {
  uint32_t first, last;

  bool has(uint32_t character) const { return character >= first && character <= last; }
};

template <size_t N>
bool is_in(const Range (&ranges)[N], uint32_t character) {
  for (const Range& range : ranges)
    if (range.has(character)) return true;
  return false;
}

constexpr uint32_t kNextLine = 0x85;
constexpr Range kMeaningless[] = {{0xAD, 0xAD}, {0x61C, 0x61C}, {0x200E, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x206F}, {0xFEFF, 0xFEFF}};
constexpr Range kWithMeaningInSomeScripts[] = {{0x34F, 0x34F}, {0x200B, 0x200D}};
/// Scripts, punctuation and signs beside which these mean nothing.
constexpr Range kWithoutJoiners[] = {{0, 0x5FF}, {0x10A0, 0x11FF}, {0x1E00, 0x218F}, {0x2E80, 0xA4CF}, {0xAC00, 0xD7AF}, {0xFF00, 0xFFEF}};

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  ///< none at the end of the line
};

Character character_at(std::string_view line, size_t at) {
  if (at >= line.size()) return {};
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(line[at + i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first < 0xE0 ? 2 : (first < 0xF0 ? 3 : 4);
  uint32_t code = first & (0xFFU >> (bytes + 1));
  for (size_t i = 1; i < bytes && at + i < line.size(); ++i) code = code << 6 | (byte(i) & 0x3F);
  return {code, bytes};
}

/// Returns the first character from `at` on that is seen; that of code 0 at the end of the line.
uint32_t next_seen(std::string_view line, size_t at) {
  Character next = character_at(line, at);
  while (next.bytes > 0 && (is_in(kMeaningless, next.code) || is_in(kWithMeaningInSomeScripts, next.code)))
    next = character_at(line, at += next.bytes);
  return next.code;
}

}  // namespace

std::string without_invisible_characters(std::string_view line) {
  constexpr std::string_view kFirstBytes = "\xC2\xCD\xD8\xE2\xEF";  // of all these characters
  if (line.find_first_of(kFirstBytes) == std::string_view::npos) return std::string(line);
  std::string text;
  text.reserve(line.size());
  uint32_t last_seen = 0;
  for (size_t at = 0; at < line.size();) {
    const Character here = character_at(line, at);
    const std::string_view bytes = line.substr(at, here.bytes);
    at += here.bytes;
    if (is_in(kMeaningless, here.code)) continue;
    if (is_in(kWithMeaningInSomeScripts, here.code)) {
      if (!is_in(kWithoutJoiners, last_seen) || !is_in(kWithoutJoiners, next_seen(line, at))) text += bytes;
      continue;
    }
    last_seen = here.code;
    text += here.code == kNextLine ? " " : bytes;
  }
  return text;
}

std::string source_text(const Vocabulary& src, std::string_view line) {
  return src.is_sentencepiece() ? without_invisible_characters(line) : std::string(line);
}

}  // namespace lacuna
