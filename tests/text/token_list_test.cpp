#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "base/error.h"
#include "text/vocabulary.h"

namespace lacuna {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<TokenId>;

VocabularyPtr list(const std::string& bytes) {
  return token_list_from_bytes(bytes, "vocab.txt");
}

TEST(TokenList, PutsMissingSpecialTokensInFront) {
  const VocabularyPtr vocabulary = list("the\ncat\n");
  EXPECT_EQ(vocabulary->size(), 5);
  EXPECT_EQ(vocabulary->piece(kEos), "</s>");
  EXPECT_EQ(vocabulary->id_of("the"), 3);
}

TEST(TokenList, TakesSpecialTokensWhereverTheyStand) {
  const VocabularyPtr vocabulary = list("<s>\n<unk>\nthe\n</s>\ncat\r\n");
  EXPECT_EQ(vocabulary->size(), 5);
  EXPECT_EQ(vocabulary->id_of("<unk>"), kUnk);
  EXPECT_EQ(vocabulary->id_of("cat"), 4);
}

TEST(TokenList, SplitsAtSpacesAndLooksUp) {
  EXPECT_THAT(list("the\ncat\n")->encode(" the  dog cat "), ElementsAre(3, kUnk, 4));
  EXPECT_THAT(list("the\ncat\n")->encode(""), ElementsAre());
}

TEST(TokenList, TakesSpecialTokensInTextForUnknown) {
  EXPECT_THAT(list("the\n")->encode("the </s> <s>"), ElementsAre(3, kUnk, kUnk));
}

TEST(TokenList, DecodesToTokensBetweenSpaces) {
  EXPECT_EQ(list("the\ncat@@\n")->decode(Ids{kBos, 3, 4, kUnk, kEos}), "the cat@@ <unk>");
}

TEST(TokenList, GivesEachTokenItsOwnWord) {
  EXPECT_THAT(list("the\ncat\n")->words_of("the cat", Ids{3, 4, kEos}), ElementsAre(0, 1, 2));
}

TEST(TokenList, RefusesWhatIsNotATokenALine) {
  EXPECT_THAT(message_of<DataError>([] { list("the 120\n"); }), AllOf(HasSubstr("vocab.txt:1"), HasSubstr("the 120")));
  EXPECT_THAT(message_of<DataError>([] { list("the\n\ncat\n"); }), HasSubstr("vocab.txt:2"));
  EXPECT_THAT(message_of<DataError>([] { list("the\ncat\nthe\n"); }), AllOf(HasSubstr("vocab.txt:3"), HasSubstr("twice")));
  EXPECT_THAT(message_of<DataError>([] { list("the\nb\xFF\n"); }), AllOf(HasSubstr("vocab.txt:2"), HasSubstr("UTF-8")));
  EXPECT_THAT(message_of<DataError>([] { list("<s>\n</s>\n"); }), HasSubstr("no token"));
}

TEST(TokenList, QuotesLittleOfAFileThatIsNone) {
  EXPECT_EQ(message_of<DataError>([] { list("the\nELF \xFF\x02 x\n"); }), "vocab.txt:2: byte 5 is not UTF-8");
  EXPECT_THAT(message_of<DataError>([] { list("a \x1B[2J\n"); }), HasSubstr("vocab.txt:1: \"a ?[2J\" is not a token"));
  const std::string long_line = "a b" + std::string(36, 'x') + "\u20ac" + std::string(100, 'y');
  EXPECT_THAT(message_of<DataError>([&] { list(long_line); }),
              HasSubstr("vocab.txt:1: \"a b" + std::string(36, 'x') + "...\" is not a token; expected"));
}

TEST(TokenList, ThatBeginsWithAByteOrderMarkIsAnError) {
  const ScratchFolder folder;
  const std::string path = folder.write("vocab.txt", "\xEF\xBB\xBFhaus\nbaum\n");
  EXPECT_THAT(message_of<DataError>([&] { load_token_list(path); }), AllOf(HasSubstr(path + ":1"), HasSubstr("byte order mark")));
}

TEST(TokenList, ThatIsMissingIsAnError) {
  const ScratchFolder folder;
  EXPECT_THAT(message_of<DataError>([&] { load_token_list(folder / "none"); }), HasSubstr("no such file"));
}

}  // namespace
}  // namespace lacuna
