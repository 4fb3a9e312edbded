#include "base/statistics.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace lacuna {
namespace {

TEST(Statistics, MedianIsTheMiddleValue) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({7}), 7);
}

TEST(Statistics, MedianOfAnEvenNumberIsTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({10, 1, 2, 4}), 3);
}

TEST(Statistics, BootstrapOfEqualValuesIsThatValue) {
  const Interval interval = bootstrap_median({5, 5, 5});
  EXPECT_EQ(interval.low, 5);
  EXPECT_EQ(interval.high, 5);
}

TEST(Statistics, BootstrapGivesTheSameForTheSameSeed) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 9};
  const Interval first = bootstrap_median(values), second = bootstrap_median(values);
  EXPECT_EQ(first.low, second.low);
  EXPECT_EQ(first.high, second.high);
}

// The median of three draws from {0, 0, 1} is 1 if two of them are: 3 (1/3)^2 (2/3) + (1/3)^3 = 7/27, between 2.5 % and 97.5 %.
TEST(Statistics, BootstrapOfThreeValuesIsWhatIsCountedByHand) {
  const Interval wide = bootstrap_median({0, 0, 1}), narrow = bootstrap_median({0, 0, 1}, 0.4);
  EXPECT_EQ(wide.low, 0);
  EXPECT_EQ(wide.high, 1);
  EXPECT_EQ(narrow.high, 0);  // 70 % of the medians and more are 0
}

TEST(Statistics, BootstrapHoldsTheTrueMedianAboutAsOftenAsItSays) {
  RandomStream random(3);
  int held = 0;
  constexpr int kSamples = 200;
  for (int i = 0; i < kSamples; ++i) {
    std::vector<double> values;
    for (int j = 0; j < 21; ++j) values.push_back(random.next_unit());
    const Interval interval = bootstrap_median(values, 0.95, 500);
    held += interval.low <= 0.5 && 0.5 <= interval.high;
  }
  EXPECT_GE(held, 0.90 * kSamples);
  EXPECT_LT(held, kSamples);
}

TEST(PairedRatio, IsTheMedianOfRatiosNotTheRatioOfMedians) {
  const PairedRatio ratio = paired_ratio({1, 10, 100}, {2, 10, 300});
  EXPECT_EQ(ratio.median, 2);
  EXPECT_EQ(ratio.interval.low, 1);
  EXPECT_EQ(ratio.interval.high, 3);
}

TEST(PairedRatio, IsNotMovedByADriftThatBothShare) {
  std::vector<double> baseline, variant;
  for (int i = 1; i <= 11; ++i) {
    baseline.push_back(i);
    variant.push_back(1.25 * i);
  }
  const PairedRatio ratio = paired_ratio(baseline, variant);
  EXPECT_EQ(ratio.median, 1.25);
  EXPECT_EQ(ratio.interval.low, 1.25);
  EXPECT_EQ(ratio.interval.high, 1.25);
}

}  // namespace
}  // namespace lacuna
