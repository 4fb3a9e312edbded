#include <gmock/gmock.h>

#include "document/document.h"

namespace lacuna::document {
namespace {

using Texts = std::vector<std::string>;

Splitting by_bytes(int64_t longest) {
  return {SentenceSplitter("en"), longest, [](std::string_view text) { return std::ssize(text); }};
}

/// Returns the document with each sentence in brackets.
std::string bracketed(const Document& document) {
  std::vector<LinkedText> translations;
  for (const std::string& sentence : document.sentences()) translations.push_back({"[" + sentence + "]"});
  return document.translated(translations).text.text;
}

TEST(PlainDocument, KeepsLineBreaksAndSpaces) {
  const Splitting how = by_bytes(100);
  const std::string text = "\n  One. Two!\r\n \t\n\nThree  \n\n";
  const auto document = plain_document(text, &how);
  EXPECT_EQ(document->sentences(), (Texts{"One.", "Two!", "Three"}));
  EXPECT_EQ(bracketed(*document), "\n  [One.] [Two!]\r\n \t\n\n[Three]  \n\n");
}

TEST(PlainDocument, TakesEachLineForASentenceWhereItIsNotSplit) {
  const auto document = plain_document("One. Two!\n Three", nullptr);
  EXPECT_EQ(document->sentences(), (Texts{"One. Two!", "Three"}));
  EXPECT_EQ(bracketed(*document), "[One. Two!]\n [Three]");
}

TEST(PlainDocument, CutsWhatIsTooLongForTheModel) {
  const Splitting how = by_bytes(12);
  const auto document = plain_document("One two, three four. Five.", &how);
  EXPECT_EQ(document->sentences(), (Texts{"One two,", "three four.", "Five."}));
  EXPECT_EQ(bracketed(*document), "[One two,] [three four.] [Five.]");
}

TEST(PlainDocument, PutsASpaceBetweenSentencesThatHadNoneWhereWordsHave) {
  const Splitting how = by_bytes(100);
  const auto document = plain_document("你好。再见。", &how);
  EXPECT_EQ(document->sentences(), (Texts{"你好。", "再见。"}));
  EXPECT_EQ(document->translated(std::vector<LinkedText>{{"Hello."}, {"Bye."}}).text.text, "Hello. Bye.");
  EXPECT_EQ(document->translated(std::vector<LinkedText>{{"你好。"}, {"再见。"}}).text.text, "你好。再见。");
}

TEST(PlainDocument, HasNothingToTranslateInNothing) {
  EXPECT_TRUE(plain_document("", nullptr)->sentences().empty());
  EXPECT_EQ(plain_document(" \n", nullptr)->translated({}).text.text, " \n");
}

}  // namespace
}  // namespace lacuna::document
