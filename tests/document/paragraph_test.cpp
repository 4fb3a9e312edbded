#include "document/paragraph.h"

#include <gmock/gmock.h>

#include <functional>

#include "sample_document.h"

namespace lacuna::document {
namespace {

using Translate = std::function<LinkedText(const std::string&)>;

Document::Translated translated_text(const std::string& text, const Translate& translate) {
  const Splitting how = english();
  return translated_by(*plain_document(text, &how), translate);
}

LinkedText in_brackets(const std::string& text) {
  return {"[" + text + "]"};
}

TEST(Paragraph, GivesKeptPartsBackWhereTheirStandInsComeBack) {
  const auto result = translated_text("Dear {{name}}, see https://a.b/c?d. Bye!", in_brackets);
  EXPECT_EQ(result.text.text, "[Dear {{name}}, see https://a.b/c?d.] [Bye!]");
  EXPECT_EQ(result.used, (std::vector<size_t>{0, 3}));
}

TEST(Paragraph, PutsThemInPlaceOfTheWordsThatAreLinkedWithTheirStandIns) {
  const auto result = translated_text("Open %s now.", [](const std::string&) {
    return LinkedText{"jetzt (Kram) auf.", {{2, 0}, {1, 1}, {0, 2}}};
  });
  EXPECT_EQ(result.text.text, "jetzt (%s) auf.");
  EXPECT_EQ(result.text.links, (Links{{2, 0}, {1, 1}, {0, 2}}));
}

TEST(Paragraph, TranslatesWhatIsBetweenThemWhereTheyAreLost) {
  const auto lose = [](const std::string& text) { return LinkedText{text.find('X') == std::string::npos ? "<" + text + ">" : "nothing"}; };
  const auto result = translated_text("Send {a} to {b}: today.", lose);
  EXPECT_EQ(result.text.text, "<Send> {a} <to> {b}<: today.>");
  EXPECT_EQ(result.used, (std::vector<size_t>{1, 2, 3}));
}

TEST(Paragraph, GivesThemBackOnceWhereTheyComeTwiceOrOthersCome) {
  for (const std::string translation : {"X1 X1 X2", "X2 X2", "X1", "x1 x2", "X1 X2 X3", ""}) {
    const auto result = translated_text(
        "A {a} b {b} c.", [&](const std::string& text) { return LinkedText{text.find('X') == std::string::npos ? "w" : translation}; });
    for (const std::string kept : {"{a}", "{b}"}) {
      const size_t at = result.text.text.find(kept);
      ASSERT_NE(at, std::string::npos) << translation;
      EXPECT_EQ(result.text.text.find(kept, at + 1), std::string::npos) << translation;
    }
  }
}

TEST(Paragraph, NeverTakesWordsOfTheTextForStandIns) {
  EXPECT_EQ(translated_text("The X1 and {a} of X7.", in_brackets).text.text, "[The X1 and {a} of X7.]");
  EXPECT_EQ(translated_text("\x01"
                            "0\x01 {a} b",
                            in_brackets)
                .text.text,
            "[0 {a} b]");
}

TEST(Paragraph, TranslatesNothingInWhatIsKeptAlone) {
  const auto result = translated_text("{a}: %s\nhttps://x.y/z", in_brackets);
  EXPECT_EQ(result.text.text, "{a}: %s\nhttps://x.y/z");
  EXPECT_TRUE(result.used.empty());
}

TEST(Paragraph, CountsWordsOfKeptPartsInLinks) {
  const auto result = translated_text("Say `a b c` now.", [](const std::string& text) {
    return LinkedText{text, {{0, 0}, {1, 1}, {2, 2}}};
  });
  EXPECT_EQ(result.text.text, "Say `a b c` now.");
  EXPECT_EQ(result.text.links, (Links{{0, 0}, {1, 1}, {4, 4}}));
}

}  // namespace
}  // namespace lacuna::document
