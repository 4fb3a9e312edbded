#include "text/invisible_characters.h"

#include <gtest/gtest.h>

#include "text/vocabulary.h"

namespace lacuna {
namespace {

TEST(InvisibleCharacters, GoBetweenLettersOfScriptsWithoutJoiners) {
  for (const char* const word :
       {"Kö\u00ADnigin", "Kö\u200Bnigin", "Kö\u200Cnigin", "Kö\u200Dnigin", "Kö\u2060nigin", "\uFEFFKönigin", "Kö\u034Fnigin",
        "\u061CKönigin", "\u2066Königin\u2069", "\u202BKönigin\u202C", "Königin\u200E", "Kö\u200C\u200D\u00ADnigin", "Königin\u200D"})
    EXPECT_EQ(without_invisible_characters(word), "Königin") << word;
  EXPECT_EQ(without_invisible_characters("дом\u200Bа 日\u200B本 שָׁ\u034Fלוֹם"), "дома 日本 שָׁלוֹם");
}

TEST(InvisibleCharacters, StayWhereTheyMeanSomething) {
  for (const char* const text : {"می\u200Cخواهم", "PDF\u200Cها", "क्\u200Dष", "👩\u200D⚕\uFE0F", "👨\u200D👩\u200D👧", "ខ្ញុំ\u200Bទៅ"})
    EXPECT_EQ(without_invisible_characters(text), text);
}

TEST(InvisibleCharacters, OfALineEndBecomeASpace) {
  EXPECT_EQ(without_invisible_characters("gut,\u0085so"), "gut, so");
}

TEST(InvisibleCharacters, AreAllThatGoes) {
  for (const char* const text : {"", "plain", "½ ﬁ … 5 µm\u00A0« »", "𝕏 \u3000e\u0301", "\xF0\x9F\x8F\xB4"})
    EXPECT_EQ(without_invisible_characters(text), text);
}

TEST(InvisibleCharacters, OfATokenAreThoseOfItsList) {
  const VocabularyPtr list = token_list_from_bytes("Kö\u00ADnigin\n", "list");
  EXPECT_EQ(source_text(*list, "Kö\u00ADnigin"), "Kö\u00ADnigin");
}

}  // namespace
}  // namespace lacuna
