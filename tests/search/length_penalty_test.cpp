#include "search/length_penalty.h"

#include <gtest/gtest.h>

namespace lacuna {
namespace {

TranslateOptions with(LengthPenalty type, double exponent) {
  TranslateOptions options;
  options.length_penalty_type = type;
  options.length_penalty = exponent;
  return options;
}

TEST(LengthPenalty, PowIsAPowerOfTheLength) {
  EXPECT_DOUBLE_EQ(length_penalty(with(LengthPenalty::kPow, 2), 3), 9);
}

TEST(LengthPenalty, GnmtIsThatOfItsPaper) {
  EXPECT_DOUBLE_EQ(length_penalty(with(LengthPenalty::kGnmt, 2), 7), 4);  // ((5 + 7) / 6)^2
}

TEST(LengthPenalty, ExponentZeroIsNoPenalty) {
  EXPECT_EQ(length_penalty(with(LengthPenalty::kPow, 0), 9), 1);
  EXPECT_EQ(length_penalty(with(LengthPenalty::kGnmt, 0), 9), 1);
}

TEST(LengthPenalty, NoneIsOneWhateverTheExponent) {
  EXPECT_EQ(length_penalty(with(LengthPenalty::kNone, 3), 9), 1);
}

}  // namespace
}  // namespace lacuna
