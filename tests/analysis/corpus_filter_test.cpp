#include "analysis/corpus_filter.h"

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

TEST(PairScores, NullRowsAreThoseOfRectifiedCrossAttention) {
  EXPECT_TRUE(has_null_rows(small_model_with("rela")->options()));
  EXPECT_FALSE(has_null_rows(small_model_with("entmax15")->options()));
  EXPECT_FALSE(has_null_rows(small_model_with("{encoder_self: rela}")->options()));
}

}  // namespace
}  // namespace lacuna
