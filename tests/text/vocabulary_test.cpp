#include "text/vocabulary.h"

#include <gtest/gtest.h>

namespace lacuna {
namespace {

VocabularyPtr tokens(const std::string& bytes) {
  return token_list_from_bytes(bytes, "vocab.txt");
}

TEST(VocabularyDifference, IsNoneWhereTheSameIdsMeanTheSamePieces) {
  EXPECT_EQ(vocabulary_difference(*tokens("a\nb\n"), *tokens("a\nb\n"), "source"), "");
  EXPECT_EQ(vocabulary_difference(*tokens("a\nb\n"), *tokens("<unk>\n<s>\n</s>\na\nb\n"), "source"), "") << "the bytes of the files differ";
}

TEST(VocabularyDifference, IsTheNumberOfPieces) {
  EXPECT_EQ(vocabulary_difference(*tokens("a\nb\n"), *tokens("x\n"), "source"), "their source vocabularies have 5 and 4 pieces");
}

TEST(VocabularyDifference, IsTheFirstPieceThatIsAnother) {
  EXPECT_EQ(vocabulary_difference(*tokens("a\nb\nc\n"), *tokens("a\nc\nb\n"), "target"),
            "piece 4 of their target vocabularies is \"b\" and \"c\"");
}

}  // namespace
}  // namespace lacuna
