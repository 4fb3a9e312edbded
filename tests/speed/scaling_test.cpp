#include "speed/scaling.h"

#include <gmock/gmock.h>

namespace lacuna {
namespace {

using testing::DoubleNear;

/// A base model on processes that need 0.74 s for their batches, on a network of 10 Gbit/s.
RankCosts usual_costs() {
  return {.compute_seconds = 0.74, .parameters = 60e6, .message_seconds = 15e-6, .bytes_per_second = 1.25e9};
}

TEST(Scaling, TwoRanksSendAsMuchAsTheModelHas) {
  EXPECT_DOUBLE_EQ(bytes_sent(usual_costs(), 2), 60e6 * 4);
  EXPECT_DOUBLE_EQ(bytes_sent(usual_costs(), 4), 60e6 * 6);
  RankCosts short_gradients = usual_costs();
  short_gradients.gradient_bytes = 2;
  EXPECT_DOUBLE_EQ(bytes_sent(short_gradients, 2), 60e6 * 3);
}

TEST(Scaling, HidesGradientsBehindTheBackwardPass) {
  const double slowest = 0.74 * 1.0287, gradients = 7.0 / 8 * 60e6 * 4 / 1.25e9;
  RankCosts costs = usual_costs();
  costs.message_seconds = 0;
  EXPECT_THAT(estimated_efficiency(costs, 8), DoubleNear(0.74 / (slowest + gradients), 1e-3));
  costs.bytes_per_second /= 10;
  EXPECT_THAT(estimated_efficiency(costs, 8), DoubleNear(0.74 / (slowest + 20 * gradients - 0.55 * 0.74), 1e-3));
}

TEST(Scaling, FallsWithRanksAndRisesWithWorkAndSpeed) {
  const RankCosts usual = usual_costs();
  RankCosts more_work = usual, faster = usual, cheaper = usual;
  more_work.compute_seconds *= 4;
  faster.bytes_per_second *= 2;
  cheaper.message_seconds /= 2;
  EXPECT_GT(estimated_efficiency(usual, 8), estimated_efficiency(usual, 64));
  EXPECT_GT(estimated_efficiency(usual, 64), estimated_efficiency(usual, 512));
  for (const RankCosts& better : {more_work, faster, cheaper}) EXPECT_GT(estimated_efficiency(better, 64), estimated_efficiency(usual, 64));
}

}  // namespace
}  // namespace lacuna
