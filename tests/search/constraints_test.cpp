#include <gmock/gmock.h>

#include "../base/scratch_folder.h"
#include "base/error.h"
#include "toy_model.h"

namespace lacuna {
namespace {

constexpr int64_t kConstrainedVocabulary = 9;

/// A table that prefers 3, then 4, 5 and eos after any history.
ToyModel repeater() {
  return ToyModel(kConstrainedVocabulary, constant_table({4.5F, 0, 1, 4, 3, 2, 0, 0, 0}));
}

TEST(Constraints, UnkComesOnlyWhereAllowed) {
  ToyModel model = repeater();
  TranslateOptions options = beam_of(1);
  options.max_length = 3;
  EXPECT_EQ(best_of(model, options), (Tokens{3, 3, kEos}));
  options.allow_unk = true;
  EXPECT_EQ(best_of(model, options), (Tokens{kUnk, kUnk, kEos}));
}

TEST(Constraints, BlockedTokensNeverCome) {
  ToyModel model = repeater();
  TranslateOptions options = beam_of(1);
  options.max_length = 3;
  EXPECT_EQ(best_of(model, options, {5, kEos}, {3, 4}), (Tokens{5, 5, kEos}));
}

TEST(Constraints, NoNgramComesTwice) {
  ToyModel model = repeater();
  TranslateOptions options = beam_of(1);
  options.max_length = 7;
  options.no_repeat_ngram_size = 2;
  EXPECT_EQ(best_of(model, options), (Tokens{3, 3, 4, 3, 5, 3, kEos}));
}

TEST(Constraints, UnigramsMayBeBlockedToo) {
  ToyModel model = repeater();
  TranslateOptions options = beam_of(1);
  options.no_repeat_ngram_size = 1;
  EXPECT_EQ(best_of(model, options), (Tokens{3, 4, 5, kEos}));
}

TEST(Constraints, RepetitionPenaltyMakesRepeatedTokensCostMore) {
  ToyModel model = repeater();
  TranslateOptions options = beam_of(1);
  options.max_length = 3;
  options.repetition_penalty = 5;
  EXPECT_EQ(best_of(model, options), (Tokens{3, 4, kEos}));
}

TEST(Constraints, RepetitionPenaltyBelowOneMakesThemCostLess) {
  ToyModel model(kConstrainedVocabulary, [](const Tokens&, const Tokens& tokens) {
    return tokens.empty() ? std::vector<float>{0, 0, 0, 0, 0, 9, 0, 0, 0} : std::vector<float>{0, 0, 3, 4, 3, 2, 1, 1, 1};
  });
  TranslateOptions options = beam_of(1);
  options.max_length = 3;
  options.repetition_penalty = 0.01;
  EXPECT_EQ(best_of(model, options), (Tokens{5, 5, kEos}));
}

TEST(Constraints, ScoresOfTokensAreThoseOfTheModelWhateverThePenalty) {
  ToyModel model = repeater();
  TranslateOptions options = beam_of(1);
  options.max_length = 3;
  options.repetition_penalty = 1.1;
  const Hypothesis found = search(model, inputs_of({{5, kEos}}), settings_with(options)).front().front();
  ASSERT_EQ(found.tokens, (Tokens{3, 3, kEos}));
  EXPECT_EQ(found.token_log_probs[0], found.token_log_probs[1]);
  EXPECT_NEAR(found.log_prob, found.token_log_probs[0] * 2.1 + found.token_log_probs[2], 1e-6);
}

TEST(Constraints, MinimumLengthHoldsEosBack) {
  ToyModel model(kConstrainedVocabulary, says({}, kConstrainedVocabulary));
  TranslateOptions options = beam_of(3);
  options.min_length = 4;
  EXPECT_EQ(best_of(model, options).size(), 4u);
}

TEST(Constraints, MinimumLengthHoldsBeyondTheRatio) {
  ToyModel model(kConstrainedVocabulary, says({}, kConstrainedVocabulary));
  TranslateOptions options = beam_of(3);
  options.min_length = 40;  // the ratio allows 16
  EXPECT_EQ(best_of(model, options).size(), 40u);
}

TEST(Constraints, WhereNothingIsAllowedTheSentenceEnds) {
  ToyModel model = repeater();
  TranslateOptions options = beam_of(2);
  options.min_length = 9;
  const Hypothesis found = search(model, inputs_of({{5, kEos}}), settings_with(options, {3, 4, 5, 6, 7, 8})).front().front();
  EXPECT_EQ(found.tokens, Tokens{kEos});
  EXPECT_TRUE(found.is_truncated);
}

TEST(Constraints, TokensWithoutProbabilityNeverCome) {
  ToyModel model(kConstrainedVocabulary, constant_table({kNever, kNever, 0, 1, kNever, kNever, kNever, kNever, kNever}));
  TranslateOptions options = beam_of(8, 8);
  options.max_length = 3;
  for (const Hypothesis& found : search_one(model, {5, kEos}, settings_with(options))) EXPECT_TRUE(std::isfinite(found.log_prob));
}

SearchInput input_of(size_t src_length, size_t prefix_length = 0) {
  return {Tokens(src_length, 5), Tokens(prefix_length, 6), 0};
}

TEST(LengthLimit, IsTheLowestOfRatioOptionAndPositions) {
  TranslateOptions options;
  options.max_length_ratio = 1.5;
  options.max_length = 100;
  EXPECT_EQ(length_limit(options, input_of(5), 0), 8 + 10);
  EXPECT_EQ(length_limit(options, input_of(90), 0), 100);
  EXPECT_EQ(length_limit(options, input_of(90), 64), 64);
  options.max_length_ratio = 1e30;  // fits no integer
  EXPECT_EQ(length_limit(options, input_of(5), 0), 100);
}

TEST(LengthLimit, LeavesRoomForTheMinimumLengthAndThePrefix) {
  TranslateOptions options;
  options.max_length_ratio = 1.5;
  options.max_length = 100;
  options.min_length = 30;
  EXPECT_EQ(length_limit(options, input_of(5), 0), 30);
  EXPECT_EQ(length_limit(options, input_of(5), 25), 25);
  EXPECT_EQ(length_limit(options, input_of(5, 20), 0), 20 + 8 + 10);
  EXPECT_EQ(length_limit(options, input_of(5, 20), 25), 25);
  EXPECT_EQ(length_limit(options, input_of(5, 95), 0), 100);
}

TEST(Constraints, APieceThatIsNotInTheVocabularyIsAnError) {
  const VocabularyPtr tgt = token_list_from_bytes("a\nb\n", "vocab.txt");
  TranslateOptions options;
  options.block_tokens = {"a", "c"};
  EXPECT_THAT(message_of<DataError>([&] { Constraints(options, *tgt); }), testing::HasSubstr("\"c\""));
}

}  // namespace
}  // namespace lacuna
