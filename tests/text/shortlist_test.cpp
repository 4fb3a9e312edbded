#include "text/shortlist.h"

#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"

namespace lacuna {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<TokenId>;

VocabularyPtr vocabulary_of(const std::string& words) {
  return token_list_from_bytes("<unk>\n<s>\n</s>\n" + words, "vocab.txt");
}

/// A shortlist for the source tokens 3 and 4 ("the cat"), with the target tokens 3 to 9.
class ShortlistTest : public testing::Test {
 protected:
  const Vocabularies vocabularies_ = {vocabulary_of("the\ncat\n"), vocabulary_of("die\nder\ndas\nKatze\nKater\n.\n,\n")};
  const Shortlist shortlist_{vocabularies_, {{}, {}, {8}, {4, 3, 5}, {6, 7}}, {9, 3}};

  std::string written(const std::string& text) const {
    write_file_atomically(path_, text);
    return path_;
  }
  std::string error_of(const std::string& text) const {
    return message_of<DataError>([&] { read_shortlist(written(text), vocabularies_); });
  }
  /// Writes the shortlist with one line replaced.
  std::string with_line(size_t line, const std::string& other) const {
    std::string text = shortlist_.to_text();
    size_t begin = 0;
    for (size_t i = 1; i < line; ++i) begin = text.find('\n', begin) + 1;
    return text.replace(begin, text.find('\n', begin) - begin, other);
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_ / "list";
};

TEST_F(ShortlistTest, ListsSpecialAndFrequentTokensAndWhatTheSourceMayBecome) {
  EXPECT_EQ(shortlist_.candidates(Ids{4, kEos}, {}), (Ids{0, 1, 2, 3, 6, 7, 8, 9}));
  EXPECT_EQ(shortlist_.candidates(Ids{3}, {}), (Ids{0, 1, 2, 3, 4, 5, 9}));
  EXPECT_EQ(shortlist_.candidates(Ids{}, {}), (Ids{0, 1, 2, 3, 9}));
}

TEST_F(ShortlistTest, ListsThePrefix) {
  EXPECT_EQ(shortlist_.candidates(Ids{}, Ids{7, 7, 3}), (Ids{0, 1, 2, 3, 7, 9}));
}

TEST_F(ShortlistTest, ListsTheSourceItselfWhereTheVocabularyIsShared) {
  const Shortlist shared({vocabularies_.tgt, vocabularies_.tgt}, std::vector<Ids>(10), {});
  EXPECT_EQ(shared.candidates(Ids{8, 5}, {}), (Ids{0, 1, 2, 5, 8}));
}

TEST_F(ShortlistTest, ComesBackFromItsFile) {
  const auto read = read_shortlist(written(shortlist_.to_text()), vocabularies_);
  EXPECT_EQ(read->to_text(), shortlist_.to_text());
  EXPECT_EQ(read->candidates(Ids{4, kEos}, {}), shortlist_.candidates(Ids{4, kEos}, {}));
}

TEST_F(ShortlistTest, IsRefusedForOtherVocabularies) {
  const Vocabularies other = {vocabularies_.src, vocabulary_of("die\nder\ndas\nKatze\nHund\n.\n,\n")};
  EXPECT_THAT(message_of<DataError>([&] { read_shortlist(written(shortlist_.to_text()), other); }),
              AllOf(HasSubstr(path_ + ":1"), HasSubstr("other vocabularies"), HasSubstr("lacuna shortlist -m")));
}

TEST_F(ShortlistTest, NamesThePlaceOfWhatIsDamaged) {
  EXPECT_THAT(error_of("0 1 2\n"), AllOf(HasSubstr(path_ + ":1"), HasSubstr("no shortlist")));
  EXPECT_THAT(error_of(with_line(2, "9 x")), AllOf(HasSubstr(path_ + ":2"), HasSubstr("\"x\" is no target token; expected 0 to 9")));
  EXPECT_THAT(error_of(with_line(6, "4 10")), AllOf(HasSubstr(path_ + ":6"), HasSubstr("\"10\"")));
  EXPECT_THAT(error_of(with_line(6, "4  5")), HasSubstr("\"\" is no target token"));
  EXPECT_THAT(error_of(with_line(7, "3 4 5 6")), AllOf(HasSubstr(path_ + ":7"), HasSubstr("more than the 3 tokens")));
  EXPECT_THAT(error_of(shortlist_.to_text() + "\n"), AllOf(HasSubstr(path_ + ":8"), HasSubstr("one line too many")));
}

TEST_F(ShortlistTest, NoticesThatItsFileIsCutShort) {
  const std::string text = shortlist_.to_text();
  EXPECT_THAT(error_of(text.substr(0, text.find('\n', text.find('\n') + 1) + 1)), AllOf(HasSubstr(path_ + ":2"), HasSubstr("cut short")));
}

TEST_F(ShortlistTest, PromisesNoMoreThanItMayHold) {
  std::string text = shortlist_.to_text();
  const size_t end = text.find('\n');
  text.replace(text.rfind(' ', text.rfind(' ', end) - 1), end - text.rfind(' ', text.rfind(' ', end) - 1), " 1001 2");
  EXPECT_THAT(error_of(text), HasSubstr("\"1001\" is no most candidates of a token; expected 0 to 1000"));
}

TEST_F(ShortlistTest, OfAnotherFormatIsRefused) {
  EXPECT_THAT(error_of("lacuna-shortlist 2 x 1 1\n"), HasSubstr("format 2; this program reads 1"));
}

}  // namespace
}  // namespace lacuna
