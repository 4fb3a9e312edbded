#include "kernels/row_kernels.h"

#include <bit>
#include <cmath>
#include <limits>

#include "compare.h"

namespace lacuna {
namespace {

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

constexpr double kTolerance = 2e-6;  // two roundings of a float from 16 to 32, which the logarithms of the longest rows are

/// Tests each set of row kernels that this machine can run.
class RowKernelsTest : public testing::TestWithParam<const RowKernels<float>*> {};

TEST_P(RowKernelsTest, LogOfSumOfExponentialsAndMaximaAreThoseOfDouble) {
  for (const int64_t count : {1, 31, 64, 65, 300, 8000}) {
    at::manual_seed(count);
    const Tensor row = 5 * at::randn({count});
    std::vector<float> maxima(static_cast<size_t>((count + kMaximumOf - 1) / kMaximumOf));
    const float log_sum = GetParam()->log_sum_exp(row.const_data_ptr<float>(), count, maxima.data());
    EXPECT_NEAR(log_sum, row.to(at::kDouble).logsumexp(0).item<double>(), kTolerance) << count;
    for (size_t i = 0; i < maxima.size(); ++i) {
      const int64_t first = static_cast<int64_t>(i) * kMaximumOf;
      EXPECT_EQ(maxima[i], row.narrow(0, first, std::min(kMaximumOf, count - first)).max().item<float>()) << count;
    }
  }
}

TEST_P(RowKernelsTest, MaximaAreNumbersWhereAnElementIsNone) {
  for (const size_t place : {0, 5, 69}) {
    std::vector<float> row(70, 1.F), maxima(2);
    row[place] = kNotANumber;
    EXPECT_TRUE(std::isnan(GetParam()->log_sum_exp(row.data(), 70, maxima.data())));
    EXPECT_EQ(maxima, (std::vector<float>{1, 1})) << place;
  }
}

TEST_P(RowKernelsTest, ElementsAreAtLeastABound) {
  std::vector<float> row(64);
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i * 37 % 64);
  row[3] = kNotANumber;
  row[20] = kInfinity;
  row[41] = -kInfinity;
  for (const int64_t count : {0, 1, 15, 16, 40, 64}) {
    for (const float bound : {-kInfinity, 10.F, 62.F, kInfinity, kNotANumber}) {
      uint64_t expected = 0;
      for (int64_t i = 0; i < count; ++i) expected |= uint64_t{row[static_cast<size_t>(i)] - 1 >= bound} << i;
      EXPECT_EQ(GetParam()->at_least(row.data(), count, 1, bound), expected) << count << " elements, " << bound;
    }
  }
}

TEST_P(RowKernelsTest, LogOfOnePlusAnExponentialIsThatOfDouble) {
  constexpr double kError = 3e-7;  // a part of the exponential's (up to 3.5e-7 where that is large), and roundings of sum and logarithm
  for (float x = 0; x < 8; x += 1.F / 512) {
    const std::vector<float> row = {0, -x};
    float maximum = 0;
    EXPECT_NEAR(GetParam()->log_sum_exp(row.data(), 2, &maximum), std::log1p(std::exp(-double{x})), kError) << x;
  }
}

/// What biased_activation's backward pass of relu makes of a gradient of 3 for each of these results.
template <class Stored>
std::vector<Stored> gradients_through_relu(const BiasedActivation<float, Stored>& kernels, std::vector<Stored> results) {
  const std::vector<float> gradient(results.size(), 3.F);
  std::vector<Stored> found(results.size());
  std::vector<float> sums(results.size());
  const BiasedActivationRows<float, Stored> args = {.columns = static_cast<int64_t>(results.size()),
                                                    .activation = Activation::kRelu,
                                                    .dropout = {},
                                                    .first_row = 0,
                                                    .input = nullptr,
                                                    .bias = nullptr,
                                                    .result = results.data(),
                                                    .gradient = gradient.data(),
                                                    .input_gradient = found.data(),
                                                    .bias_sums = sums.data()};
  kernels.backward(args, 0, 1);
  return found;
}

TEST_P(RowKernelsTest, PassTheGradientOfARelusResultUnlessItIsZeroOfEitherSign) {
  EXPECT_EQ(gradients_through_relu<float>(GetParam()->biased_activation, {0.F, -0.F, 1e-30F, kNotANumber}),
            (std::vector<float>{0, 0, 3, 3}));
  constexpr uint16_t kMinusZero = 0x8000, kOne = 0x3f80, kThree = 0x4040, kNone = 0x7fc0;
  EXPECT_EQ(gradients_through_relu<uint16_t>(GetParam()->rounded_activation, {0, kMinusZero, kOne, kNone}),
            (std::vector<uint16_t>{0, 0, kThree, kThree}));
}

TEST_P(RowKernelsTest, RoundsToBf16AsLibTorchDoesAndKeepsNotANumber) {
  std::vector<float> row;
  for (const uint32_t bits : {0u, 0x3f800000u, 0x3f808000u, 0x3f818000u, 0x3f807fffu, 0x7f7fffffu, 0x7f800000u, 0xff800000u, 0x80000001u,
                              0x7f800001u, 0x7f807fffu, 0x7fffffffu, 0xffffffffu, 0xffc00000u})
    row.push_back(std::bit_cast<float>(bits));
  const auto count = static_cast<int64_t>(row.size());
  std::vector<uint16_t> rounded(row.size());
  GetParam()->narrow_rows(1, count, row.data(), rounded.data(), count);
  for (size_t i = 0; i < row.size(); ++i) {
    if (std::isnan(row[i]))
      EXPECT_TRUE(std::isnan(std::bit_cast<float>(uint32_t{rounded[i]} << 16))) << i;
    else
      EXPECT_EQ(rounded[i], c10::BFloat16(row[i]).x) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, RowKernelsTest, testing::ValuesIn(all_row_kernels<float>()),
                         [](const auto& set) { return std::string(name_of(set.param->target)); });

}  // namespace
}  // namespace lacuna
