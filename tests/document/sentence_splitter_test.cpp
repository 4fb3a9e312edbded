#include "document/sentence_splitter.h"

#include <gmock/gmock.h>

#include <fstream>
#include <string>

namespace lacuna::document {
namespace {

std::vector<std::string> split(const std::string& text, const std::string& language = "en") {
  std::vector<std::string> sentences;
  for (const Span sentence : SentenceSplitter(language).sentences(text)) sentences.emplace_back(sentence.of(text));
  return sentences;
}

/// Cuts a line of the file of hard cases at its marks; what the marks stand for is appended to `text`.
std::vector<std::string> expected_sentences(const std::string& marked, std::string& text) {
  std::vector<std::string> sentences = {""};
  for (size_t i = 0; i < marked.size();) {
    const bool is_space = marked.compare(i, 3, " | ") == 0;
    if (is_space || marked.compare(i, 2, "||") == 0) {
      sentences.emplace_back();
      text += is_space ? " " : "";
      i += is_space ? 3 : 2;
    } else {
      sentences.back() += marked[i];
      text += marked[i++];
    }
  }
  return sentences;
}

TEST(SentenceSplitter, FindsTheBordersOfHardCases) {
  std::ifstream file(LACUNA_SOURCE_DIR "/tests/document/hard_cases.tsv");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos) << line;
    std::string text;
    const std::vector<std::string> expected = expected_sentences(line.substr(tab + 1), text);
    EXPECT_EQ(split(text, line.substr(0, tab)), expected) << line;
    ++cases;
  }
  EXPECT_GT(cases, 30);
}

TEST(SentenceSplitter, KnowsALanguageByAnyOfItsCodes) {
  for (const std::string code : {"de", "deu", "DE", "de_AT", "de-CH", "deu_Latn"})
    EXPECT_EQ(split("Am 3. Oktober.", code), std::vector<std::string>{"Am 3. Oktober."}) << code;
  EXPECT_EQ(split("Am 3. Oktober.", "xx").size(), 2U);
  EXPECT_EQ(split("Am 3. Oktober.", "").size(), 2U);
}

TEST(SentenceSplitter, LeavesOutWhiteSpaceAroundSentencesAlone) {
  EXPECT_EQ(split(" \tOne.  \u00a0 Two.\r\n\u2028Three \n"), (std::vector<std::string>{"One.", "Two.", "Three"}));
  EXPECT_EQ(split(""), std::vector<std::string>());
  EXPECT_EQ(split(" \n\u3000"), std::vector<std::string>());
  EXPECT_EQ(split("..."), std::vector<std::string>{"..."});
}

TEST(SentenceSplitter, GoesThroughDamagedTextAndLongWords) {
  EXPECT_EQ(split("a\xff\xfe. B\xc3").size(), 2U);
  EXPECT_EQ(split(std::string(100000, '.')).size(), 1U);
  EXPECT_EQ(split(std::string(100000, 'a')).size(), 1U);
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "Yes! ";
  EXPECT_EQ(split(many).size(), 20000U);
}

}  // namespace
}  // namespace lacuna::document
