#include "analysis/place_measures.h"
#include "golden.h"

namespace lacuna {
namespace {

TEST(Calibration, IsWorkedOutByHand) {
  MaskEffect sums;
  sums.add_row(std::vector<float>{.5f, .5f, NAN}, std::vector<float>{1, 0, NAN});
  const double p = 1 / (1 + std::exp(1)), q = 1 - p;  // (.5, .5 e) divided by its sum
  const double after = -p * std::log(p) - q * std::log(q), a = (.5 + p) / 2, b = (.5 + q) / 2;
  EXPECT_EQ(sums.rows, 1);
  EXPECT_NEAR(sums.entropy_change, after - std::log(2), 1e-12);
  EXPECT_NEAR(sums.divergence, -a * std::log(a) - b * std::log(b) - (after + std::log(2)) / 2, 1e-12);
  EXPECT_NEAR(sums.mask, .5, 1e-12);
  EXPECT_EQ(sums.bins[1].rows, 1);  // entropy .69
}

TEST(Calibration, LeavesNullRowsOut) {
  MaskEffect sums;
  sums.add_row(std::vector<float>{0, 0}, std::vector<float>{1, 0});
  EXPECT_EQ(sums.rows, 0);
}

TEST(RankCorrelation, LeavesRowsOutThatHaveNone) {
  RankCorrelation correlation;
  EXPECT_FALSE(correlation.mean().has_value());
  correlation.add(.5);
  correlation.add({});
  correlation.add(1);
  EXPECT_DOUBLE_EQ(correlation.mean().value(), .75);
  EXPECT_EQ(correlation.rows, 2);
  EXPECT_EQ(correlation.undefined, 1);
}

TEST(Calibration, IsGatheredWhereAttentionShowsIt) {
  const RaggedShape src({0, 2}), tgt({0, 1});
  int calls = 0;
  WeightGatherer gatherer(src, tgt, 1, true, [&](const CallWeights& call) {
    ASSERT_EQ(call.original != nullptr, calls++ == 0);
    if (call.original == nullptr) return;
    EXPECT_EQ(mask_effect_of(call, 0).rows, 1);
    EXPECT_EQ(call.mask->matrix(0, 0).row(0)[1], .25f);
  });
  const std::vector<int32_t> keys = {0, 1};
  const std::vector<float> row = {.5f, .5f}, mask = {.75f, .25f};
  gatherer.see(0, AttentionSite::kCross, 0, 0, 0, row, keys);
  gatherer.see_original(0, AttentionSite::kCross, 0, 0, 0, row, mask, keys);
  gatherer.end_call(0, AttentionSite::kCross);
  gatherer.see(1, AttentionSite::kCross, 0, 0, 0, row, keys);  // a layer that is not calibrated
  gatherer.end_call(1, AttentionSite::kCross);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace lacuna
