#include "analysis/row_measures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analysis/place_measures.h"

namespace lacuna {
namespace {

const float kHidden = NAN;

TEST(RowMeasures, AreWorkedOutByHand) {
  const RowMeasures row = measure_row(std::vector<float>{0, .5f, .5f, 0, kHidden});
  EXPECT_EQ(row.visible, 4);
  EXPECT_EQ(row.zeros, 2);
  EXPECT_NEAR(row.entropy, std::log(2), 1e-12);
  EXPECT_FALSE(row.is_null());
  EXPECT_TRUE(measure_row(std::vector<float>{0, 0, kHidden}).is_null());
}

TEST(HeadSums, AreWorkedOutByHand) {
  HeadSums head;
  head.add(measure_row(std::vector<float>{0, .5f, .5f, 0, kHidden}));
  head.add(measure_row(std::vector<float>{0, 0, kHidden, kHidden, kHidden}));
  EXPECT_DOUBLE_EQ(head.sparsity(), 4. / 6);
  EXPECT_DOUBLE_EQ(head.null_rate(), 1. / 2);
  EXPECT_DOUBLE_EQ(head.support(), (2. + 0) / 2);
  EXPECT_NEAR(head.mean_entropy().value(), std::log(2), 1e-12);  // the null row has none
}

TEST(RowMeasures, EntropyIsOfTheRowDividedByItsSum) {
  EXPECT_NEAR(entropy_of(std::vector<float>{3, 1}), -.75 * std::log(.75) - .25 * std::log(.25), 1e-12);
  EXPECT_NEAR(entropy_of(std::vector<float>{3, -1}), entropy_of(std::vector<double>{3, 1}), 1e-12);  // magnitudes
  EXPECT_EQ(entropy_of(std::vector<float>{0, 0}), 0);
}

double divergence(const std::vector<std::vector<float>>& heads, std::optional<double> temperature) {
  const std::vector<std::span<const float>> rows(heads.begin(), heads.end());
  return HeadDivergence()(rows, temperature);
}

TEST(HeadDivergence, IsZeroForHeadsThatAttendAlikeAndLog2ForTwoThatShareNoKey) {
  EXPECT_NEAR(divergence({{.25f, .75f}, {.25f, .75f}}, {}), 0, 1e-12);
  EXPECT_NEAR(divergence({{1, 0}, {0, 1}}, {}), std::log(2), 1e-12);
}

TEST(HeadDivergence, TakesANullRowForAKeyOfItsOwn) {
  EXPECT_NEAR(divergence({{0, 0}, {0, 0}}, 1), 0, 1e-12);  // both attend to nothing
  EXPECT_NEAR(divergence({{1, 0}, {0, 0}}, {}), std::log(2), 1e-12);
}

TEST(HeadDivergence, OfRectifiedRowsIsThatOfTheirSoftmaxTimesTheTemperature) {
  const double p = 1 / (1 + std::exp(-.5));  // softmax of .5 * (1, 0)
  const double mean_entropy = -p * std::log(p) - (1 - p) * std::log(1 - p);
  EXPECT_NEAR(divergence({{1, 0}, {0, 1}}, .5), std::log(2) - mean_entropy, 1e-12);
}

TEST(HeadDivergence, DoesNotSeeHiddenKeys) {
  EXPECT_NEAR(divergence({{1, 0, kHidden}, {0, 1, kHidden}}, 1), divergence({{1, 0}, {0, 1}}, 1), 1e-12);
}

TEST(KendallTau, CorrectsForTies) {
  EXPECT_DOUBLE_EQ(kendall_tau_b(std::vector<double>{1, 2, 3}, std::vector<double>{10, 20, 30}).value(), 1);
  EXPECT_DOUBLE_EQ(kendall_tau_b(std::vector<double>{0, 0, 1}, std::vector<double>{1, 2, 3}).value(), 2 / std::sqrt(2. * 3));
  EXPECT_FALSE(kendall_tau_b(std::vector<double>{1, 1}, std::vector<double>{1, 2}).has_value());
}

/// The definition, over all pairs of positions.
std::optional<double> tau_b_of_pairs(const std::vector<double>& x, const std::vector<double>& y) {
  int64_t agreement = 0, untied_x = 0, untied_y = 0;
  const auto sign = [](double value) { return (value > 0) - (value < 0); };
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const int in_x = sign(x[i] - x[j]), in_y = sign(y[i] - y[j]);
      agreement += in_x * in_y;
      untied_x += in_x != 0;
      untied_y += in_y != 0;
    }
  }
  if (untied_x == 0 || untied_y == 0) return {};
  return static_cast<double>(agreement) / std::sqrt(static_cast<double>(untied_x) * static_cast<double>(untied_y));
}

TEST(KendallTau, IsThatOfAllPairsWhereverTiesAre) {
  std::mt19937 random(1);
  for (const unsigned values : {1u, 2u, 3u, 10u, 1000u}) {  // that a position may have: the fewer, the more ties
    for (size_t size = 0; size < 70; ++size) {
      std::vector<double> x(size), y(size);
      for (double& one : x) one = random() % values == 0 ? 0 : -static_cast<double>(random() % values);
      for (double& one : y) one = static_cast<double>(random() % values);
      EXPECT_EQ(kendall_tau_b(x, y), tau_b_of_pairs(x, y)) << values << " values, " << size << " positions";
      EXPECT_EQ(kendall_tau_b(x, x), tau_b_of_pairs(x, x)) << values << " values, " << size << " positions";
    }
  }
}

TEST(KendallTau, LeavesHiddenKeysOut) {
  const double hidden = NAN;
  const std::vector<double> x = {3, hidden, 1, 2, hidden}, y = {1, 5, 3, 2, 0};
  EXPECT_EQ(kendall_tau_b(x, y), -1);
  EXPECT_EQ(kendall_tau_b(y, x), -1);
  EXPECT_FALSE(kendall_tau_b(std::vector<double>{hidden, 1}, std::vector<double>{1, 2}).has_value());
}

TEST(JsDivergence, IsLog2ForRowsThatShareNothing) {
  EXPECT_NEAR(js_divergence(std::vector<double>{2, 0}, std::vector<double>{0, 5}), std::log(2), 1e-12);
}

}  // namespace
}  // namespace lacuna
