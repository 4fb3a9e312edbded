#include "attention/rows/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "attention/call.h"

namespace lacuna {
namespace {

std::vector<float> factors(const AttentionDropout& dropout, int32_t query, int32_t begin, int32_t count, int32_t stride = 1) {
  std::vector<float> all(static_cast<size_t>(count));
  dropout.factors(query, begin, count, stride, all.data());
  return all;
}

TEST(AttentionDropout, DropsItsShareAndScalesTheRest) {
  const AttentionDropout dropout(0.3, 1, 0, 0);
  int dropped = 0;
  for (int32_t query = 0; query < 100; ++query)
    for (const float factor : factors(dropout, query, 0, 200)) {
      dropped += factor == 0;
      if (factor != 0) {
        EXPECT_FLOAT_EQ(factor, 1 / 0.7f);
      }
    }
  EXPECT_NEAR(dropped / 20000.0, 0.3, 0.012);  // 3.7 standard deviations
}

TEST(AttentionDropout, DecidesByPositionHoweverARowIsCutUp) {
  const AttentionDropout dropout(0.5, 1, 2, 3);
  const auto whole = factors(dropout, 4, 0, 40);
  const auto part = factors(dropout, 4, 7, 10);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 7));
  const auto strided = factors(dropout, 4, 2, 9, 4);
  for (size_t j = 0; j < strided.size(); ++j) EXPECT_EQ(strided[j], whole[2 + 4 * j]);
  const std::vector<int32_t> positions = {0, 3, 4, 7, 21, 39};
  std::vector<float> picked(positions.size());
  dropout.factors(4, positions.data(), static_cast<int32_t>(positions.size()), picked.data());
  for (size_t j = 0; j < positions.size(); ++j) EXPECT_EQ(picked[j], whole[static_cast<size_t>(positions[j])]);
}

TEST(AttentionDropout, DiffersBetweenCallsHeadsSentencesAndQueries) {
  const auto base = factors(AttentionDropout(0.5, 1, 0, 0), 0, 0, 64);
  EXPECT_NE(base, factors(AttentionDropout(0.5, 2, 0, 0), 0, 0, 64));
  EXPECT_NE(base, factors(AttentionDropout(0.5, 1, 1, 0), 0, 0, 64));
  EXPECT_NE(base, factors(AttentionDropout(0.5, 1, 0, 1), 0, 0, 64));
  EXPECT_NE(base, factors(AttentionDropout(0.5, 1, 0, 0), 1, 0, 64));
}

TEST(AttentionDropout, HasNumbersOfItsOwnForEachLayerSiteHeadSentenceSeedAndStep) {
  std::set<uint64_t> keys;
  AttentionCall call;
  call.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({3, 3, 3}, {7, 8, 70}));
  call.dropout = 0.5;
  for (const int layer : {0, 1, 2, 30})
    for (const AttentionSite site : kAttentionSites)
      for (const uint64_t seed : {1, 2})
        for (const int64_t step : {0, 1, 7})
          for (const int64_t head : {0, 1, 5})
            for (const int64_t sentence : {0, 1, 2}) {
              call.layer = layer;
              call.site = site;
              const ForwardContext context = {.training = true, .seed = seed, .step = step};
              keys.insert(dropout_of(call, context, sentence, head).rule().key);
            }
  EXPECT_EQ(keys.size(), 4u * 3u * 2u * 3u * 3u * 3u);
}

TEST(AttentionDropout, GoesByTheNameOfASentenceAndNotByItsPlaceInTheBatch) {
  AttentionCall first, last;
  first.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({3, 3}, {70, 7}));
  last.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({3, 3}, {7, 70}));
  first.dropout = last.dropout = 0.5;
  const ForwardContext context = {.training = true};
  EXPECT_EQ(dropout_of(first, context, 0, 1).rule().key, dropout_of(last, context, 1, 1).rule().key);
}

TEST(AttentionDropout, IsOffOutsideOfTraining) {
  AttentionCall call;
  call.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({3}));
  call.dropout = 0.5;
  EXPECT_TRUE(dropout_of(call, {.training = true}, 0, 0).is_active());
  EXPECT_FALSE(dropout_of(call, {}, 0, 0).is_active());
}

}  // namespace
}  // namespace lacuna
