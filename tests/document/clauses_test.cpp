#include "document/clauses.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

namespace lacuna::document {
namespace {

/// Cuts a text whose measure is its bytes.
std::vector<std::string> cut(const std::string& text, int64_t most, const std::vector<Span>& whole = {}) {
  std::vector<std::string> parts;
  const Measure bytes = [](std::string_view one) { return std::ssize(one); };
  for (const Span part : cut_sentence(text, {0, text.size()}, most, bytes, whole)) parts.emplace_back(part.of(text));
  return parts;
}

using Parts = std::vector<std::string>;

TEST(CutSentence, LeavesWhatIsShortEnough) {
  EXPECT_EQ(cut("one, two", 8), Parts{"one, two"});
}

TEST(CutSentence, CutsBehindClauseMarksFirst) {
  EXPECT_EQ(cut("one two, three; four five", 16), (Parts{"one two, three;", "four five"}));
  EXPECT_EQ(cut("at 10:30 or 3,5 – or later", 20), (Parts{"at 10:30 or 3,5 –", "or later"}));
}

TEST(CutSentence, CutsLongClausesAtSpacesAndLongWordsBetweenCharacters) {
  EXPECT_EQ(cut("one two three four, five", 9), (Parts{"one two", "three", "four,", "five"}));
  EXPECT_EQ(cut("abcdefgh ij", 4), (Parts{"abcd", "efgh", "ij"}));
  EXPECT_EQ(cut("ääää", 5), (Parts{"ää", "ää"}));
}

TEST(CutSentence, CutsChineseBehindItsMarks) {
  EXPECT_EQ(cut("一二，三四，五", 12), (Parts{"一二，", "三四，五"}));
}

TEST(CutSentence, NeverLosesAnythingAndNeverCutsWithinWhatIsWhole) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += i % 7 == 0 ? "word " : "x";
  std::string joined;
  for (const std::string& part : cut(text, 3)) {
    EXPECT_LE(part.size(), 3U);
    joined += part;
  }
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  EXPECT_EQ(joined, text);
  EXPECT_EQ(cut("abcX1defg", 3, {{3, 5}}), (Parts{"ab", "cX1", "de", "fg"}));
  EXPECT_EQ(cut("X123", 2, {{0, 4}}), Parts{"X123"});
}

}  // namespace
}  // namespace lacuna::document
