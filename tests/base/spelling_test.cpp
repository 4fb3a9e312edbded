#include "base/spelling.h"

#include <gtest/gtest.h>

namespace lacuna {
namespace {

const std::vector<std::string> kKnown = {"softmax", "sparsemax", "topk", "entmax15", "d_model"};

TEST(Spelling, FindsTheWordThatWasMeant) {
  EXPECT_EQ(nearest_word("sparsmax", kKnown), "sparsemax");
  EXPECT_EQ(nearest_word("otpk", kKnown), "topk");
  EXPECT_EQ(nearest_word("D-Model", kKnown), "d_model");
  EXPECT_EQ(nearest_word("--beam", {"--seed", "--beam-size"}), "--beam-size");
  EXPECT_EQ(nearest_word("encodr", {"decoder_self", "encoder_self"}), "encoder_self");
  EXPECT_EQ(nearest_word("Encoder", {"decoder_self", "encoder_self"}), "encoder_self");
  EXPECT_EQ(nearest_word("l", {"k", "lr"}), "lr");
}

TEST(Spelling, FindsNothingThatIsFar) {
  EXPECT_EQ(nearest_word("relu", kKnown), "");
  EXPECT_EQ(nearest_word("", kKnown), "");
  EXPECT_EQ(nearest_word("softmax", {}), "");
  EXPECT_EQ(nearest_word("x", {"k", "ratio"}), "");   // one letter away, and no letter is the same
  EXPECT_EQ(nearest_word("kye", {"key_value"}), "");  // too short to go by its beginning
  EXPECT_EQ(nearest_word(std::string(100000, 'a'), kKnown), "");
}

TEST(Spelling, EndsAMessage) {
  EXPECT_EQ(did_you_mean("topkk", kKnown), ". Did you mean \"topk\"?");
  EXPECT_EQ(did_you_mean("zzzzzz", kKnown), "");
}

TEST(Spelling, JoinsWords) {
  EXPECT_EQ(join({"a", "b"}), "a, b");
  EXPECT_EQ(join({}), "");
  EXPECT_EQ(join({"a", "b"}, " -> "), "a -> b");
}

TEST(Spelling, CountsThings) {
  EXPECT_EQ(counted(0, "line"), "0 lines");
  EXPECT_EQ(counted(1, "line"), "1 line");
  EXPECT_EQ(counted(2, "line"), "2 lines");
}

}  // namespace
}  // namespace lacuna
