#include "document/clauses.h"

#include <algorithm>
#include <array>
#include <utility>

#include "document/characters.h"

namespace lacuna::document {
namespace {

enum class Level { kClauses, kWords, kCharacters };

bool is_clause_mark(UChar32 character) {
  constexpr std::array<UChar32, 8> kMarks = {',', ';', ':', 0x2013, 0x2014, 0x60C, 0x61B, 0x964};
  return std::ranges::find(kMarks, character) != kMarks.end();
}

/// Returns true for marks of Chinese and Japanese, which no space follows.
bool is_wide_clause_mark(UChar32 character) {
  constexpr std::array<UChar32, 8> kMarks = {0x3001, 0x3002, 0xFF01, 0xFF0C, 0xFF1A, 0xFF1B, 0xFF1F, 0xFF64};
  return std::ranges::find(kMarks, character) != kMarks.end();
}

class Cutter {
 public:
  Cutter(std::string_view text, int64_t most, const Measure& measure, const std::vector<Span>& whole)
      : text_(text), most_(most), measure_(measure), whole_(whole) {}

  void cut(Span span, Level level) {
    span = trimmed(text_, span);
    if (span.size() == 0) return;
    if (surely_fits(span.of(text_)) || measure_(span.of(text_)) <= most_) {
      parts_.push_back(span);
    } else if (level == Level::kCharacters) {
      halve(span);
    } else {
      join_units(span, level);
    }
  }
  std::vector<Span> parts() && { return std::move(parts_); }

 private:
  /// Joins clauses or words to parts that are as long as may be.
  void join_units(Span span, Level level) {
    const Level finer = level == Level::kClauses ? Level::kWords : Level::kCharacters;
    Span part{span.begin, span.begin};
    int64_t size = 0;
    while (part.end < span.end) {
      const Span unit{part.end, end_of_unit(part.end, span.end, level)};
      const int64_t size_of_unit = measure_(unit.of(text_));
      if (part.size() > 0 && size + size_of_unit > most_) {
        cut(part, finer);
        part = {part.end, part.end};
        size = 0;
      }
      part.end = unit.end;
      size += size_of_unit;
    }
    cut(part, finer);
  }

  /// Returns true for a text whose bytes alone say that it is short: a byte is a piece at most, and there is one more at the beginning; but
  /// normalization may make six bytes of one that is not ASCII.
  bool surely_fits(std::string_view text) const {
    constexpr int64_t kMostOfByte = 6;
    const auto others = std::ranges::count_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
    return std::ssize(text) + (kMostOfByte - 1) * others < most_;
  }

  /// Returns the end of the clause or word that begins at `at`, with the white space behind it.
  size_t end_of_unit(size_t at, size_t end, Level level) const {
    for (UChar32 last = 0; at < end;) {
      const UChar32 character = character_at(text_, at);
      at = next_character(text_, at);
      if (level == Level::kClauses ? is_space(character) && is_clause_mark(last) : is_space(character)) break;
      if (level == Level::kClauses && is_wide_clause_mark(character)) break;
      last = character;
    }
    while (at < end && is_space(character_at(text_, at))) at = next_character(text_, at);
    return at;
  }

  void halve(Span span) {
    size_t middle = span.begin + span.size() / 2;
    const auto after = std::ranges::lower_bound(whole_, middle, {}, &Span::begin);  // the first that does not begin before the middle
    if (after != whole_.begin() && std::prev(after)->end > middle) middle = std::prev(after)->end;
    while (middle < span.end && (is_within_character(middle) || u_getCombiningClass(character_at(text_, middle)) != 0)) ++middle;
    if (middle == span.begin || middle >= span.end) {
      parts_.push_back(span);
      return;
    }
    cut({span.begin, middle}, Level::kCharacters);
    cut({middle, span.end}, Level::kCharacters);
  }
  bool is_within_character(size_t at) const { return (static_cast<unsigned char>(text_[at]) & 0xC0) == 0x80; }

  std::string_view text_;
  const int64_t most_;
  const Measure& measure_;
  const std::vector<Span>& whole_;
  std::vector<Span> parts_;
};

}  // namespace

std::vector<Span> cut_sentence(std::string_view text, Span sentence, int64_t most, const Measure& measure, const std::vector<Span>& whole) {
  Cutter cutter(text, most, measure, whole);
  cutter.cut(sentence, Level::kClauses);
  return std::move(cutter).parts();
}

}  // namespace lacuna::document
