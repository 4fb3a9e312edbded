
#include "compare.h"
#include "kernels/layer_products.h"
#include "kernels/layers.h"

namespace lacuna {
namespace {

constexpr int64_t kFeatures = 24, kInner = 72;

/// x, residual, gain and bias of the norm; then weights and biases: inner and outer, or those of one linear layer.
Inputs inputs_of(int64_t rows, at::ScalarType type) {
  return {at::randn({rows, kFeatures}, type),   at::randn({rows, kFeatures}, type),   at::randn({kFeatures}, type),
          at::randn({kFeatures}, type),         at::randn({kInner, kFeatures}, type), at::randn({kInner}, type),
          at::randn({kFeatures, kInner}, type), at::randn({kFeatures}, type)};
}
Inputs linear_inputs_of(int64_t rows, at::ScalarType type) {
  Inputs inputs = inputs_of(rows, type);
  inputs.resize(4);
  inputs.insert(inputs.end(), {at::randn({kFeatures, kFeatures}, type), at::randn({kFeatures}, type)});
  return inputs;
}

struct Options {
  Activation activation = Activation::kRelu;
  bool is_rms = false;
  double rate = 0;
  Precision precision = Precision::kFp32, readers = Precision::kFp32;
};

ResidualEnd end_of(const Inputs& in, const Options& options) {
  return {.residual = in[1],
          .dropout = a_dropout(options.rate / 2, static_cast<int32_t>(in[1].size(0))),
          .norm = {in[2], options.is_rms ? Tensor() : in[3], options.is_rms},
          .readers = options.readers};
}

/// Something of both results.
Tensor sum_of(const ResidualNorm& result) {
  return 2 * result.sum + result.normed;
}

Tensor fused(const Inputs& in, const Options& options) {
  const Dropout dropout = a_dropout(options.rate, static_cast<int32_t>(in[1].size(0)));
  return sum_of(feed_forward(in[0], {{in[4], in[5]}, {in[6], in[7]}, options.activation, dropout}, end_of(in, options), options.precision));
}

Tensor by_parts(const Inputs& in, const Options& options) {
  const Dropout dropout = a_dropout(options.rate, static_cast<int32_t>(in[1].size(0)));
  const Tensor hidden = activation_dropout(linear(in[0], in[4], in[5], options.precision), options.activation, dropout);
  return sum_of(residual_norm(end_of(in, options), linear(hidden, in[6], in[7], options.precision)));
}

Tensor fused_linear(const Inputs& in, const Options& options) {
  return sum_of(linear_to_residual(in[0], {in[4], in[5]}, end_of(in, options), options.precision));
}

Tensor linear_by_parts(const Inputs& in, const Options& options) {
  return sum_of(residual_norm(end_of(in, options), linear(in[0], in[4], in[5], options.precision)));
}

using Way = Tensor (*)(const Inputs&, const Options&);

class FeedForwardKernel : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, FeedForwardKernel, testing::ValuesIn(kernel_cases()), name_of_case);

TEST_P(FeedForwardKernel, EqualsItsParts) {
  for (const Activation activation : kActivations)
    for (const bool is_rms : {false, true}) {
      const Options options = {.activation = activation, .is_rms = is_rms, .rate = 0.4};
      expect_same([&](const Inputs& in) { return fused(in, options); }, [&](const Inputs& in) { return by_parts(in, options); },
                  inputs_of(50, type()));
    }
}

TEST_P(FeedForwardKernel, LinearToResidualEqualsItsParts) {
  for (const double rate : {0.0, 0.4}) {
    const Options options = {.rate = rate};
    expect_same([&](const Inputs& in) { return fused_linear(in, options); }, [&](const Inputs& in) { return linear_by_parts(in, options); },
                linear_inputs_of(300, type()));
  }
}

/// What a layer that reads rows of a norm does with them.
struct LayerOfNormed {
  std::vector<Tensor> gradients;  ///< of its own parameters, the residual and the norm's
  bool keeps_rows = false;
};

/// The layer takes the normed rows, what they were made of if it may know, its parameters and where its output goes.
template <class Layer>
LayerOfNormed run_on_normed(const Inputs& values, const Options& options, bool knows_source, const Layer& layer) {
  Inputs in;
  for (const Tensor& value : values) in.push_back(value.clone().requires_grad_(true));
  const ResidualEnd end = end_of(in, options);
  ResidualNorm rows = residual_norm(end, in[0]);
  const NormSource source = {rows.sum.detach(), end.norm};
  const Tensor result = layer(rows.normed, knows_source ? &source : nullptr, in, end_of(in, options));
  const c10::weak_intrusive_ptr<c10::TensorImpl> kept(rows.normed.getIntrusivePtr());
  rows = {};
  LayerOfNormed found = {{}, !kept.expired()};
  result.square().sum().backward();
  for (const Tensor& input : in)
    if (input.grad().defined()) found.gradients.push_back(input.grad());
  return found;
}

TEST_P(FeedForwardKernel, MakesRowsOfANormAgainInPlaceOfKeepingThem) {
  const auto of_linear = [](const Tensor& x, const NormSource* source, const Inputs& in, const ResidualEnd& /*end*/) {
    return linear(x, in[4], in[5], Precision::kFp32, /*is_rounded=*/false, source);
  };
  const auto of_feed_forward = [](const Tensor& x, const NormSource* source, const Inputs& in, const ResidualEnd& end) {
    return sum_of(feed_forward(x, {.inner = {in[4], in[5]}, .outer = {in[6], in[7]}, .dropout = {}}, end, Precision::kFp32, source));
  };
  const auto expect_alike = [](const LayerOfNormed& keeps, const LayerOfNormed& makes) {
    EXPECT_TRUE(keeps.keeps_rows);
    EXPECT_FALSE(makes.keeps_rows);
    ASSERT_EQ(makes.gradients.size(), keeps.gradients.size());
    for (size_t i = 0; i < keeps.gradients.size(); ++i) EXPECT_TRUE(makes.gradients[i].equal(keeps.gradients[i])) << i;
  };
  const Inputs values = inputs_of(300, type());
  for (const bool is_rms : {false, true}) {
    const Options options = {.is_rms = is_rms, .rate = 0.4};
    expect_alike(run_on_normed(values, options, false, of_linear), run_on_normed(values, options, true, of_linear));
    expect_alike(run_on_normed(values, options, false, of_feed_forward), run_on_normed(values, options, true, of_feed_forward));
  }
}

/// Results and gradients of both, the same factors rounded. A sum in another order may be rounded to the other neighbour: 2^-8 of one
/// number among many.
void expect_same_in_bf16(Way fused, Way by_parts, const Inputs& values, Options options) {
  options.precision = Precision::kBf16;
  const Tensor direction = at::randn(values[1].sizes());
  std::vector<Inputs> inputs(2);
  std::vector<Tensor> results;
  results.reserve(2);
  for (const bool parts : {false, true}) {
    for (const Tensor& value : values) inputs[parts].push_back(value.clone().requires_grad_(true));
    results.push_back(parts ? by_parts(inputs[parts], options) : fused(inputs[parts], options));
    (results.back() * direction).sum().backward();
  }
  const auto expect_near = [](const Tensor& actual, const Tensor& expected) {
    EXPECT_EQ(actual.scalar_type(), expected.scalar_type());
    EXPECT_LE((actual - expected).norm().item<double>(), 1e-3 * expected.norm().item<double>());
  };
  expect_near(results[0], results[1]);
  for (size_t i = 0; i < values.size(); ++i) {
    SCOPED_TRACE("gradient of input " + std::to_string(i));
    expect_near(inputs[0][i].grad(), inputs[1][i].grad());
  }
}

class Bf16FeedForward : public RowKernelSets {};
INSTANTIATE_TEST_SUITE_P(, Bf16FeedForward, testing::ValuesIn(row_kernel_sets()), name_of_set);

TEST_P(Bf16FeedForward, EqualsItsParts) {
  for (const Activation activation : kActivations)
    for (const double rate : {0.0, 0.4})
      expect_same_in_bf16(fused, by_parts, inputs_of(50, at::kFloat), {.activation = activation, .rate = rate});
}

TEST_P(Bf16FeedForward, EqualsItsPartsInSeveralBlocks) {
  for (const Activation activation : kActivations)
    expect_same_in_bf16(fused, by_parts, inputs_of(1100, at::kFloat), {.activation = activation, .rate = 0.4});
}

TEST_P(Bf16FeedForward, LinearToResidualEqualsItsParts) {
  for (const double rate : {0.0, 0.4})
    expect_same_in_bf16(fused_linear, linear_by_parts, linear_inputs_of(300, at::kFloat), {.rate = rate});
}

TEST_P(Bf16FeedForward, TakesAndGivesRoundedRows) {
  for (const Way way : {fused, fused_linear}) {
    Inputs values = way == fused ? inputs_of(300, at::kFloat) : linear_inputs_of(300, at::kFloat);
    values[0] = rounded_to_bf16(values[0]);
    const Way parts = way == fused ? by_parts : linear_by_parts;
    expect_same_in_bf16(way, parts, values, {.rate = 0.4, .readers = Precision::kBf16});
  }
}

TEST_P(Bf16FeedForward, NormedRowsAndTheirGradientAreThoseOfFloatRounded) {
  const Inputs values = linear_inputs_of(300, at::kFloat);
  std::vector<ResidualNorm> results;
  std::vector<Tensor> gradients;
  for (const Precision readers : {Precision::kFp32, Precision::kBf16}) {
    Inputs in;
    for (const Tensor& value : values) in.push_back(value.clone().requires_grad_(true));
    results.push_back(linear_to_residual(in[0], {in[4], in[5]}, end_of(in, {.readers = readers}), Precision::kBf16));
    results.back().normed.sum().backward();  // of ones, which bf16 holds
    gradients.push_back(in[1].grad());
  }
  EXPECT_TRUE(results[1].sum.equal(results[0].sum));
  EXPECT_TRUE(results[1].normed.equal(rounded_to_bf16(results[0].normed)));
  expect_close(gradients[1], gradients[0]);
}

TEST_P(Bf16FeedForward, GivesFrozenWeightsNoGradient) {
  Inputs in = inputs_of(5, at::kFloat);
  in[0].requires_grad_(true);
  fused(in, {.precision = Precision::kBf16}).sum().backward();
  EXPECT_TRUE(in[0].grad().defined());
  for (size_t i = 1; i < in.size(); ++i) EXPECT_FALSE(in[i].grad().defined());
}

class LinearInBf16 : public RowKernelSets {};
INSTANTIATE_TEST_SUITE_P(, LinearInBf16, testing::ValuesIn(row_kernel_sets()), name_of_set);

TEST_P(LinearInBf16, GivesRoundedRowsARoundedGradient) {
  const Inputs values = linear_inputs_of(300, at::kFloat);
  std::vector<Tensor> gradients;
  for (const bool is_rounded : {false, true}) {
    const Tensor rounded = rounded_to_bf16(values[0]), x = (is_rounded ? rounded : rounded.to(at::kFloat)).requires_grad_(true);
    linear(x, values[4], values[5], Precision::kBf16).square().sum().backward();
    gradients.push_back(x.grad());
  }
  EXPECT_TRUE(gradients[1].equal(rounded_to_bf16(gradients[0])));
}

TEST_P(LinearInBf16, GivesARoundedResultAndTakesItsGradient) {
  const Inputs values = linear_inputs_of(300, at::kFloat);
  std::vector<Tensor> results, biases;
  for (const bool is_rounded : {false, true}) {
    const Tensor bias = values[5].clone().requires_grad_(true);
    results.push_back(linear(values[0], values[4], bias, Precision::kBf16, is_rounded));
    results.back().backward(rounded_to_bf16(values[1]).to(results.back().scalar_type()));
    biases.push_back(bias.grad());
  }
  EXPECT_EQ(results[0].scalar_type(), at::kFloat);
  EXPECT_TRUE(results[1].equal(rounded_to_bf16(results[0])));
  EXPECT_TRUE(biases[1].equal(biases[0]));
}

class RowsWithSums : public RowKernelSets {};
INSTANTIATE_TEST_SUITE_P(, RowsWithSums, testing::ValuesIn(row_kernel_sets()), name_of_set);

TEST_P(RowsWithSums, AreTheRoundedRowsAndTheSumsOfThoseNotRounded) {
  const Tensor rows = at::randn({300, 40});
  const RoundedWithSums result = rounded_with_sums(rows);
  EXPECT_TRUE(result.rounded.equal(rounded_to_bf16(rows)));
  expect_close(result.sums, rows.sum(0));
  const RoundedWithSums again = rounded_with_sums(result.rounded);
  EXPECT_TRUE(again.rounded.equal(result.rounded));
  expect_close(again.sums, result.rounded.to(at::kFloat).sum(0));
}

}  // namespace
}  // namespace lacuna
