#include "analysis/pair_scores.h"

#include "small_analysis.h"

namespace lacuna {
namespace {

using Order = std::vector<size_t>;

const std::vector<PairScore> kScores = {
    {.null_rate = .5f, .log_prob = -1, .is_scored = true},
    {},  // an empty side
    {.null_rate = .1f, .log_prob = -3, .is_scored = true},
    {.null_rate = .2f, .log_prob = -.5f, .is_scored = true},
};

TEST(CorpusFilter, RanksLowNullRatesAndHighLogProbabilitiesFirst) {
  EXPECT_EQ(ranked(kScores, FilterBy::kNullRate), (Order{2, 3, 0, 1}));
  EXPECT_EQ(ranked(kScores, FilterBy::kLogProb), (Order{3, 0, 2, 1}));
}

TEST(CorpusFilter, RanksByBothAddTheRanks) {
  EXPECT_EQ(ranked(kScores, FilterBy::kBoth), (Order{3, 2, 0, 1}));  // ranks 1 + 0, 0 + 2, 2 + 1
}

TEST(CorpusFilter, APairThatFindsNothingSharesNoRankWithThoseWithoutScores) {
  const std::vector<PairScore> scores = {{.null_rate = .5f, .log_prob = -2, .is_scored = true},
                                         {.null_rate = 1, .log_prob = -1, .is_scored = true},
                                         {.null_rate = .6f, .log_prob = -3, .is_scored = true},
                                         {},
                                         {},
                                         {}};
  EXPECT_EQ(ranked(scores, FilterBy::kBoth), (Order{0, 1, 2, 3, 4, 5}));  // ranks 0 + 1, 2 + 0, 1 + 2
}

TEST(CorpusFilter, RanksLowNullContrastsFirst) {
  std::vector<PairScore> scores = kScores;
  scores[0].null_contrast = -2;
  scores[2].null_contrast = 1;
  EXPECT_EQ(ranked(scores, FilterBy::kNullContrast), (Order{0, 3, 2, 1}));
}

// Squares of side 1, the shuffled one 3 to the right: variances 1/3, no covariance.
TEST(NullContrast, IsFishersDiscriminant) {
  const std::vector<std::vector<float>> given = {{0, 0}, {1, 0}, {0, 1}, {1, 1}}, shuffled = {{3, 0}, {4, 0}, {3, 1}, {4, 1}};
  const NullContrast contrast = NullContrast::fit(given, shuffled);
  const double weight = 3 / (1 / 3. + 1e-4);
  EXPECT_NEAR(contrast.of({2, .5f}), 0, 1e-9);  // the middle
  EXPECT_NEAR(contrast.of({3, .5f}), weight, 1e-6);
  EXPECT_NEAR(contrast.of({0, 7}), -2 * weight, 1e-6);  // the second says nothing
  EXPECT_THROW(NullContrast::fit(given, {{0, 0}}), ShapeError);
}

// Two heads that are null in turn, the one where pairs are given, the other where they are shuffled: their mean says nothing.
TEST(NullContrast, TellsWhatTheMeanOfHeadsDoesNot) {
  const NullContrast contrast = NullContrast::fit({{.8f, .2f}, {.7f, .3f}, {.9f, .1f}}, {{.2f, .8f}, {.3f, .7f}, {.1f, .9f}});
  EXPECT_LT(contrast.of({.6f, .4f}), 0);
  EXPECT_GT(contrast.of({.4f, .6f}), 0);
}

TEST(PairScores, LearnTheContrastFromEachOthersTargets) {
  const auto model = small_model_with("rela");
  std::vector<SentencePair> pairs(4);
  for (size_t i = 0; i < 3; ++i) {
    pairs[i].src = {5, static_cast<TokenId>(4 + i), 2};
    pairs[i].tgt = {6, static_cast<TokenId>(9 - i), 4, 2};
  }
  const NullContrast contrast = null_contrast_of(*model, pairs, 100);  // the last pair is empty
  const std::vector<PairScore> scores = score_pairs(*model, pairs, 100, &contrast);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isfinite(scores[i].null_contrast));
  EXPECT_FALSE(scores[3].is_scored);
  EXPECT_THROW(null_contrast_of(*model, {pairs[0], pairs[3]}, 100), DataError);
}

TEST(PairScores, AreThoseOfTheModel) {
  const auto model = small_model_with("rela");
  SentencePair pair, empty;
  pair.src = {5, 9, 2};
  pair.tgt = {6, 4, 2};
  const std::vector<PairScore> scores = score_pairs(*model, {pair, empty}, 100);
  const Tensor log_probs = model->token_log_probs(ragged_of({pair.src}), ragged_of({pair.tgt}));
  EXPECT_NEAR(scores[0].log_prob, log_probs.mean().item<float>(), 1e-5);
  EXPECT_GE(scores[0].null_rate, 0);
  EXPECT_LE(scores[0].null_rate, 1);
  EXPECT_TRUE(scores[0].is_scored);
  EXPECT_FALSE(scores[1].is_scored);
}

TEST(PairScores, OfAModelWhoseNumbersAreNoneAreAnError) {
  const auto model = small_model_of_nans();
  SentencePair pair;
  pair.src = {5, 9, 2};
  pair.tgt = {6, 4, 2};
  EXPECT_THROW(token_log_probs(*model, {&pair}), CheckpointError);
  EXPECT_THROW(score_pairs(*model, {pair}, 100), CheckpointError);
}

TEST(PairScores, NullRowsAreThoseOfRectifiedCrossAttentionCalibratedOrNot) {
  EXPECT_TRUE(has_null_rows(small_model_with("rela")->options()));
  EXPECT_FALSE(has_null_rows(small_model_with("entmax15")->options()));
  EXPECT_FALSE(has_null_rows(small_model_with("{encoder_self: rela}")->options()));
  EXPECT_FALSE(has_null_rows(small_model_with("{cross: calibrated}")->options()));
  EXPECT_TRUE(has_null_rows(small_model_with("{cross: {type: calibrated, base: rela}}")->options()));
}

}  // namespace
}  // namespace lacuna
