#include "document/terms.h"

#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "base/line_reader.h"
#include "document/document.h"

namespace lacuna::document {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Terms terms_of(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Terms terms;
  for (const auto& [source, target] : pairs) terms.add(source, target, "here");
  return terms;
}

/// Returns the parts of a text: "[source=target]" for a term.
std::string cut(const Terms& terms, const std::string& text) {
  std::string shown;
  for (const TextPart& part : terms.cut({{text}})) shown += part.is_term() ? "[" + part.text + "=" + part.term + "]" : part.text;
  return shown;
}

TEST(Terms, AreFoundAsWholeWordsTheLongestFirst) {
  const Terms terms = terms_of({{"Haus", "mansion"}, {"rotes Haus", "red mansion"}, {"gehen", "walk"}, {"家", "home"}});
  EXPECT_EQ(cut(terms, "Ein rotes Haus, das Haus."), "Ein [rotes Haus=red mansion], das [Haus=mansion].");
  EXPECT_EQ(cut(terms, "Haustür Wohnhaus haus HAUS"), "Haustür Wohnhaus haus HAUS");
  EXPECT_EQ(cut(terms, "Gehen wir? GEHEN!"), "[Gehen=walk] wir? [GEHEN=walk]!");
  EXPECT_EQ(cut(terms, "我家很大"), "我[家=home]很大");
  EXPECT_EQ(cut(terms, ""), "");
}

TEST(Terms, KeepTheirBounds) {
  Terms terms = terms_of({{"a", "b"}});
  const auto refused = [&](const std::string& source, const std::string& target, const std::string& message) {
    EXPECT_THAT([&] { terms.add(source, target, "file:3"); }, ThrowsMessage<LineError>(HasSubstr("file:3: " + message)));
  };
  refused("", "b", "the source of a term is empty");
  refused("a", " b", "the target of a term is empty, or has spaces around it: \" b\"");
  refused("a\x01", "b", "the source of a term holds a control character");
  refused(std::string(Terms::kLongest + 1, 'a'), "b", "the source of a term has 1001 bytes");
  refused("a", "c", "the term \"a\" is \"c\" here and \"b\" in here");
  terms.add("a", "b", "file:4");
}

TEST(Terms, AreReadFromAFile) {
  const ScratchFolder folder;
  EXPECT_EQ(cut(read_terms(folder.write("terms", "# of ours\n\nHaus\tmansion\n")), "Haus"), "[Haus=mansion]");
  for (const auto& line : {std::pair("Haus\n", ":1: the line has 1 column; expected two"),
                           {"a\tb\nHaus\tmansion\tx\n", ":2: the line has 3 columns; expected two"},
                           {"\n", ": there is no term"}})
    EXPECT_THAT([&] { read_terms(folder.write("terms", line.first)); }, ThrowsMessage<DataError>(HasSubstr(line.second)));
}

/// Returns what a text becomes with one translation of its only sentence, and its links.
std::pair<std::string, Links> translated(const Terms& terms, const std::string& text, const LinkedText& translation,
                                         const std::string& expected_sentence = "") {
  const Terms* const some[] = {&terms};
  const auto document = plain_document(text, nullptr, some);
  EXPECT_THAT(document->sentences(), ElementsAre(expected_sentence.empty() ? text : expected_sentence));
  const Document::Translated found = document->translated(std::vector<LinkedText>{translation});
  return {found.text.text, found.text.links};
}

TEST(Terms, TakeThePlaceOfLinkedWords) {
  const Terms terms = terms_of({{"Haus", "big mansion"}, {"Hund", "hound"}});
  const auto [text, links] = translated(terms, "Das Haus, der Hund.", {"The house, the dog.", {{0, 0}, {1, 1}, {2, 2}, {3, 3}}});
  EXPECT_EQ(text, "The big mansion, the hound.");
  EXPECT_THAT(links, ElementsAre(Link(0, 0), Link(1, 1), Link(2, 3), Link(3, 4)));
}

TEST(Terms, StayWhereTheyAreThereAlready) {
  const Terms terms = terms_of({{"Haus", "house"}});
  EXPECT_EQ(translated(terms, "Das Haus.", {"The house.", {}}).first, "The house.");
  // Twice in the source, once in the translation: the other takes the linked words.
  EXPECT_EQ(translated(terms, "Haus und Haus", {"house and home", {{0, 0}, {1, 1}, {2, 2}}}).first, "house and house");
}

TEST(Terms, ComeBesideTheirNeighborsWithoutLinkedWords) {
  const Terms terms = terms_of({{"sehr", "very"}, {"Haus", "house"}});
  EXPECT_EQ(translated(terms, "Ein sehr alter Baum.", {"An old tree.", {{0, 0}, {2, 1}, {3, 2}}}).first, "An very old tree.");
  EXPECT_EQ(translated(terms, "Sehr alt.", {"Old.", {{1, 0}}}).first, "very Old.");
  EXPECT_EQ(translated(terms, "Alt, sehr.", {"Old.", {{0, 0}}}).first, "Old very.");
  EXPECT_EQ(translated(terms, "Alt, sehr.", {"Old.", {}}).first, "Old very.");
  EXPECT_EQ(translated(terms, "Alt, sehr.", {"", {}}).first, "very");
  // Two terms whose words are linked with one word.
  const auto [text, links] = translated(terms, "sehr nun Haus", {"Home now", {{0, 0}, {1, 1}, {2, 0}}});
  EXPECT_EQ(text, "very now house");
  EXPECT_THAT(links, testing::IsSupersetOf({Link(0, 0), Link(1, 1), Link(2, 2)}));
}

TEST(Terms, AreTranslatedWithoutASentenceWhereNothingElseIsThere) {
  const Terms terms = terms_of({{"Haus", "house"}});
  const Terms* const some[] = {&terms};
  const auto document = plain_document("Haus!", nullptr, some);
  EXPECT_TRUE(document->sentences().empty());
  EXPECT_EQ(document->translated({}).text.text, "house!");
}

TEST(Terms, GoWithOtherKeptParts) {
  const Splitting how = {SentenceSplitter("de"), 100, [](std::string_view text) { return static_cast<int64_t>(words_of(text).size()); }};
  const Terms terms = terms_of({{"Haus", "mansion"}});
  const Terms* const some[] = {&terms};
  const auto document = plain_document("Das Haus {name} steht. Ein Baum.", &how, some);
  ASSERT_GE(document->sentences().size(), 2U);
  EXPECT_EQ(document->sentences().front(), "Das Haus X2 steht.");
  std::vector<LinkedText> translations(document->sentences().size(), {"part"});
  translations.front() = {"The house X2 stands.", {{0, 0}, {1, 1}, {2, 2}, {3, 3}}};
  translations.back() = {"A tree.", {}};
  EXPECT_EQ(document->translated(translations).text.text, "The mansion {name} stands. A tree.");
  translations.front() = {"The house stands.", {}};  // without the placeholder the parts stand for it
  const std::string text = document->translated(translations).text.text;
  EXPECT_THAT(text, HasSubstr("mansion"));
  EXPECT_THAT(text, HasSubstr("{name}"));
}

}  // namespace
}  // namespace lacuna::document
