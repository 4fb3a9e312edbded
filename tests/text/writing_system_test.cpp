#include "text/writing_system.h"

#include <gtest/gtest.h>

namespace lacuna {
namespace {

TEST(WritingSystem, OfChineseAndJapaneseHasNoSpaces) {
  EXPECT_TRUE(has_no_spaces_between_words({"两个男人在街上走路。", "一只狗在跑。"}));
  EXPECT_TRUE(has_no_spaces_between_words({"二人の男が通りを歩いている。", "犬がはしっている。"}));
  EXPECT_TRUE(has_no_spaces_between_words({"这是 GPU 的价格：1000 元，很便宜的价格"}));
}

TEST(WritingSystem, OfOtherLanguagesHasSpaces) {
  for (const char* line : {"", "   ", "Zwei Männer gehen.", "Два человека идут.", "두 남자가 걷고 있다.", "امشي",
                           "A sign says 東京 in Tokyo.", "\xE4", "\xE4\xB8", "\xFF\xFE"})
    EXPECT_FALSE(has_no_spaces_between_words({line})) << line;
  EXPECT_FALSE(has_no_spaces_between_words({}));
}

TEST(IsBlank, OfSpacesAlone) {
  for (const char* const line : {"", " ", " \t\r\v\f", "\u00A0", "\u3000 \u3000"}) EXPECT_TRUE(is_blank(line)) << line;
  for (const char* const line : {"a", " a ", "\u2581", "\xE3\x80", "\xC2"}) EXPECT_FALSE(is_blank(line)) << line;
}

}  // namespace
}  // namespace lacuna
