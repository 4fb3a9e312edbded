#include "train/learning_rate.h"

#include <gmock/gmock.h>

#include <cmath>

namespace lacuna {
namespace {

TrainOptions schedule(Schedule which) {
  TrainOptions options;
  options.schedule = which;
  options.lr = 0.5;
  options.warmup_steps = 100;
  return options;
}

TEST(LearningRate, RisesLinearlyFromZeroInTheWarmUp) {
  const LearningRate rate(schedule(Schedule::kInverseSqrt), 64);
  EXPECT_DOUBLE_EQ(rate.at(1), 0.005);
  EXPECT_DOUBLE_EQ(rate.at(50), 0.25);
  EXPECT_DOUBLE_EQ(rate.at(100), 0.5);
}

TEST(LearningRate, InverseSqrtIsHalfAfterFourWarmUps) {
  EXPECT_DOUBLE_EQ(LearningRate(schedule(Schedule::kInverseSqrt), 64).at(400), 0.25);
}

TEST(LearningRate, InverseSqrtWithoutWarmUpFallsFromTheFirstUpdate) {
  TrainOptions options = schedule(Schedule::kInverseSqrt);
  options.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(LearningRate(options, 64).at(1), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(options, 64).at(4), 0.25);
}

TEST(LearningRate, NoamIsEquation3OfThePaper) {
  TrainOptions options = schedule(Schedule::kNoam);
  options.lr = 2;
  options.warmup_steps = 4000;
  const LearningRate rate(options, 512);
  for (const double step : {1.0, 1000.0, 4000.0, 100000.0}) {
    const double expected = 2 * std::pow(512, -0.5) * std::min(std::pow(step, -0.5), step * std::pow(4000, -1.5));
    EXPECT_NEAR(rate.at(static_cast<int64_t>(step)), expected, 1e-15);
  }
}

TEST(LearningRate, LinearEndsAtItsLastStep) {
  TrainOptions options = schedule(Schedule::kLinear);
  options.decay_steps = 300;
  options.min_lr = 0.1;
  const LearningRate rate(options, 64);
  EXPECT_DOUBLE_EQ(rate.at(100), 0.5);
  EXPECT_DOUBLE_EQ(rate.at(200), 0.3);
  EXPECT_DOUBLE_EQ(rate.at(300), 0.1);
  EXPECT_DOUBLE_EQ(rate.at(1000), 0.1);
}

TEST(LearningRate, CosineIsHalfWayInTheMiddle) {
  TrainOptions options = schedule(Schedule::kCosine);
  options.max_steps = 300;
  options.min_lr = 0.1;
  const LearningRate rate(options, 64);
  EXPECT_DOUBLE_EQ(rate.at(100), 0.5);
  EXPECT_DOUBLE_EQ(rate.at(150), 0.1 + 0.4 * (1 + std::sqrt(0.5)) / 2);
  EXPECT_DOUBLE_EQ(rate.at(200), 0.3);
  EXPECT_DOUBLE_EQ(rate.at(300), 0.1);
}

TEST(LearningRate, PlateauFallsByItsFactorAtEachDecrease) {
  const LearningRate rate(schedule(Schedule::kPlateau), 64);
  EXPECT_DOUBLE_EQ(rate.at(5000, 0), 0.5);
  EXPECT_DOUBLE_EQ(rate.at(5000, 1), 0.25);
  EXPECT_DOUBLE_EQ(rate.at(5000, 3), 0.0625);
}

TEST(LearningRate, ConstantStays) {
  EXPECT_DOUBLE_EQ(LearningRate(schedule(Schedule::kConstant), 64).at(123456), 0.5);
}

TEST(LearningRate, IsNeverBelowMinLrAfterTheWarmUp) {
  TrainOptions options = schedule(Schedule::kInverseSqrt);
  options.min_lr = 0.2;
  EXPECT_DOUBLE_EQ(LearningRate(options, 64).at(1000000), 0.2);
  EXPECT_DOUBLE_EQ(LearningRate(options, 64).at(1), 0.005);
}

}  // namespace
}  // namespace lacuna
