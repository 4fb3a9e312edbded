#include "text/writing_system.h"

#include <gtest/gtest.h>

namespace lacuna {
namespace {

TEST(WritingSystem, OfChineseAndJapaneseHasNoSpaces) {
  EXPECT_EQ(languages_without_spaces({"两个男人在街上走路。", "一只狗在跑。"}), "zh or ja");
  EXPECT_EQ(languages_without_spaces({"二人の男が通りを歩いている。", "犬がはしっている。"}), "zh or ja");
  EXPECT_EQ(languages_without_spaces({"这是 GPU 的价格：1000 元，很便宜的价格"}), "zh or ja");
}

TEST(WritingSystem, OfThaiLaoBurmeseKhmerAndTibetanHasNoSpaces) {
  EXPECT_EQ(languages_without_spaces({"แมวนั่งอยู่บนเสื่อ", "เด็กผู้ชาย 2 คน"}), "th");
  EXPECT_EQ(languages_without_spaces({"ຂ້ອຍໄປຕະຫຼາດ"}), "lo");
  EXPECT_EQ(languages_without_spaces({"ကျွန်တော်ဒီနေ့ဈေးသွားတယ်"}), "my");
  EXPECT_EQ(languages_without_spaces({"ខ្ញុំទៅផ្សារ"}), "km");
  EXPECT_EQ(languages_without_spaces({"བོད་སྐད"}), "bo or dz");
}

TEST(WritingSystem, OfOtherLanguagesHasSpaces) {
  for (const char* line : {"", "   ", "Zwei Männer gehen.", "Два человека идут.", "두 남자가 걷고 있다.", "امشي",
                           "A sign says 東京 in Tokyo.", "\xE4", "\xE4\xB8", "\xFF\xFE"})
    EXPECT_EQ(languages_without_spaces({line}), "") << line;
  EXPECT_EQ(languages_without_spaces({}), "");
}

TEST(IsBlank, OfSpacesAlone) {
  for (const char* const line : {"", " ", " \t\r\v\f", "\u00A0", "\u3000 \u3000"}) EXPECT_TRUE(is_blank(line)) << line;
  for (const char* const line : {"a", " a ", "\u2581", "\xE3\x80", "\xC2"}) EXPECT_FALSE(is_blank(line)) << line;
}

}  // namespace
}  // namespace lacuna
