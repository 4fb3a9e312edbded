#include "kernels/feed_forward.h"

#include "compare.h"
#include "kernels/activation.h"
#include "kernels/bf16_product.h"
#include "kernels/linear.h"

namespace lacuna {
namespace {

constexpr int64_t kFeatures = 24, kInner = 72;

Inputs inputs_of(int64_t rows, at::ScalarType type) {
  return {at::randn({rows, kFeatures}, type), at::randn({kInner, kFeatures}, type), at::randn({kInner}, type),
          at::randn({kFeatures, kInner}, type), at::randn({kFeatures}, type)};
}

Tensor fused(const Inputs& in, bool is_gelu, const Dropout& dropout, FactorPrecision precision) {
  return feed_forward(in[0], {in[1], in[2]}, {in[3], in[4]}, is_gelu, dropout, precision);
}

Tensor by_parts(const Inputs& in, bool is_gelu, const Dropout& dropout, FactorPrecision precision) {
  const Tensor hidden = activation_dropout(linear(in[0], in[1], in[2], precision), is_gelu, dropout);
  return linear(hidden, in[3], in[4], precision);
}

class FeedForwardKernel : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, FeedForwardKernel, testing::Values(at::kFloat, at::kDouble), name_of_type);

TEST_P(FeedForwardKernel, EqualsItsParts) {
  for (const bool is_gelu : {false, true}) {
    const Dropout dropout = a_dropout(0.4, 50);
    expect_same([&](const Inputs& in) { return fused(in, is_gelu, dropout, FactorPrecision::kFp32); },
                [&](const Inputs& in) { return by_parts(in, is_gelu, dropout, FactorPrecision::kFp32); }, inputs_of(50, GetParam()));
  }
}

/// Results and gradients of both, the same factors rounded. A sum in another order may be rounded to the other neighbour: 2^-8 of one
/// number among many.
void expect_same_in_bf16(int32_t rows, bool is_gelu, double rate) {
  const Dropout dropout = a_dropout(rate, rows);
  const Inputs values = inputs_of(rows, at::kFloat);
  const Tensor direction = at::randn({rows, kFeatures});
  std::vector<Inputs> inputs(2);
  std::vector<Tensor> results;
  results.reserve(2);
  for (const bool parts : {false, true}) {
    for (const Tensor& value : values) inputs[parts].push_back(value.clone().requires_grad_(true));
    results.push_back(parts ? by_parts(inputs[parts], is_gelu, dropout, FactorPrecision::kBf16)
                            : fused(inputs[parts], is_gelu, dropout, FactorPrecision::kBf16));
    (results.back() * direction).sum().backward();
  }
  const auto expect_near = [](const Tensor& actual, const Tensor& expected) {
    EXPECT_LE((actual - expected).norm().item<double>(), 1e-3 * expected.norm().item<double>());
  };
  expect_near(results[0], results[1]);
  for (size_t i = 0; i < values.size(); ++i) {
    SCOPED_TRACE("gradient of input " + std::to_string(i));
    expect_near(inputs[0][i].grad(), inputs[1][i].grad());
  }
}

TEST(Bf16FeedForward, EqualsItsParts) {
  for (const bool is_gelu : {false, true})
    for (const double rate : {0.0, 0.4}) expect_same_in_bf16(50, is_gelu, rate);
}

TEST(Bf16FeedForward, EqualsItsPartsInSeveralBlocks) {
  for (const bool is_gelu : {false, true}) expect_same_in_bf16(1100, is_gelu, 0.4);
}

TEST(Bf16FeedForward, GivesFrozenWeightsNoGradient) {
  Inputs in = inputs_of(5, at::kFloat);
  in[0].requires_grad_(true);
  fused(in, false, {}, FactorPrecision::kBf16).sum().backward();
  EXPECT_TRUE(in[0].grad().defined());
  for (size_t i = 1; i < in.size(); ++i) EXPECT_FALSE(in[i].grad().defined());
}

TEST(RoundedWithSums, AreTheRoundedRowsAndTheSumsOfThoseNotRounded) {
  const Tensor rows = at::randn({300, 40});
  const RoundedWithSums result = rounded_with_sums(rows);
  EXPECT_TRUE(result.rounded.equal(rounded_to_bf16(rows)));
  expect_close(result.sums, rows.sum(0));
}

}  // namespace
}  // namespace lacuna
