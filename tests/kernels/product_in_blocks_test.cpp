#include "kernels/product_in_blocks.h"

#include <optional>

#include "compare.h"
#include "kernels/layers.h"
#include "kernels/projection_loss.h"

namespace lacuna {
namespace {

/// Products of float by our own loops: in vectors of each instruction set, or in tiles as three of bf16.
class ProductInBlocks : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (in_tiles() ? !cpu_has(CpuTarget::kAmx) : !vectors().has_value()) GTEST_SKIP() << "this processor has no instructions for it";
  }

  static bool in_tiles() { return GetParam() == "amx"; }
  static std::optional<BlockKernel<FloatFactor>> vectors() {
    for (const auto& [target, kernel] : float_block_kernels())
      if (name_of(target) == GetParam()) return kernel;
    return std::nullopt;
  }

  static void multiply(const Tensor& result, const Tensor& a, const Tensor& b, bool add = false, const Tensor& bias = {}) {
    in_tiles() ? product_in_blocks(amx::kBf16x3Blocks, result, a, b, add, bias) : product_in_blocks(*vectors(), result, a, b, add, bias);
  }

  /// In tiles a number is the sum of two of bf16 but for 2^-17 of it, the product of the two small ones, up to 2^-16 of the whole, is left
  /// out, and there are three products for each depth. Sums are rounded to 2^-24.
  static void expect_within_bound(const Tensor& actual, const Tensor& a, const Tensor& b,
                                  const Tensor& added = at::zeros({1}, at::kDouble)) {
    const Tensor left = a.to(at::kDouble), right = b.to(at::kDouble), expected = left.mm(right) + added;
    const auto sums = static_cast<double>((in_tiles() ? 3 : 1) * a.size(1) + 4);
    const double per_product = (in_tiles() ? std::pow(2, -15) : 0) + sums * std::pow(2, -24);
    const Tensor bound = per_product * (left.abs().mm(right.abs()) + added.abs());
    EXPECT_TRUE((actual.to(at::kDouble) - expected).abs().le(bound).all().item<bool>());
  }
};
INSTANTIATE_TEST_SUITE_P(, ProductInBlocks, testing::Values("avx2", "avx512", "amx"), [](const auto& test) { return test.param; });

/// By columns if so wanted, and a part of something larger.
Tensor laid_out(const Tensor& matrix, bool by_rows) {
  const Tensor lines = by_rows ? matrix : matrix.t().contiguous();
  const Tensor part = at::constant_pad_nd(lines, {0, 3}, 9).narrow(1, 0, lines.size(1));
  return by_rows ? part : part.t();
}

TEST_P(ProductInBlocks, StaysWithinItsBoundForEveryShapeAndLayout) {
  for (const auto& [m, k, n] : {std::tuple{37, 72, 50},
                                {64, 96, 64},
                                {33, 1100, 31},
                                {70, 5, 130},
                                {1, 64, 1},
                                {1, 64, 9},
                                {9, 64, 1},
                                {5, 1, 6},
                                {40, 513, 33},
                                {130, 300, 70}})
    for (const bool a_by_rows : {true, false})
      for (const bool b_by_rows : {true, false}) {
        SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(k) + " x " + std::to_string(n) +
                     (a_by_rows ? ", by rows" : ", by columns") + (b_by_rows ? ", by rows" : ", by columns"));
        const Tensor a = at::randn({m, k}), b = at::randn({k, n}), bias = at::randn({n});
        const Tensor room = at::full({m, n + 5}, 7.F), result = room.narrow(1, 0, n);
        multiply(result, laid_out(a, a_by_rows), laid_out(b, b_by_rows));
        expect_within_bound(result, a, b);
        const Tensor before = result.to(at::kDouble);
        multiply(result, laid_out(a, a_by_rows), laid_out(b, b_by_rows), /*add=*/true, {});
        expect_within_bound(result, a, b, before);
        multiply(result, laid_out(a, a_by_rows), laid_out(b, b_by_rows), /*add=*/false, bias);
        expect_within_bound(result, a, b, bias.to(at::kDouble));
        EXPECT_TRUE(room.narrow(1, n, 5).eq(7).all().item<bool>()) << "wrote beside the result";
      }
}

TEST_P(ProductInBlocks, TakesFactorsThatOverlapOrHaveNoContiguousLines) {
  const Tensor wide = at::randn({40, 128}), row = at::randn({1, 64}), b = at::randn({64, 33}), result = at::empty({40, 33});
  const Tensor every_other = wide.slice(1, 0, 128, 2), repeated = row.expand({40, 64});
  multiply(result, every_other, b);
  expect_within_bound(result, every_other, b);
  multiply(result, repeated, b);
  expect_within_bound(result, repeated, b);
}

TEST_P(ProductInBlocks, DependsOnNeitherThreadsNorOtherRows) {
  const Tensor a = at::randn({700, 600}), b = at::randn({600, 90});
  const Tensor all = at::empty({700, 90}), by_one = at::empty({700, 90}), some = at::empty({45, 70});
  multiply(all, a, b);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  multiply(by_one, a, b);
  at::set_num_threads(threads);
  EXPECT_TRUE(by_one.equal(all));
  multiply(some, a.narrow(0, 0, 45), b.narrow(1, 0, 70));
  EXPECT_TRUE(some.equal(all.narrow(0, 0, 45).narrow(1, 0, 70)));
}

TEST(FloatBlocks, HaveTheSameBitsWithEveryInstructionSet) {
  const Tensor a = at::randn({70, 600}), b = at::randn({600, 90}), first = at::empty({70, 90});
  product_in_blocks(float_block_kernels().front().kernel, first, a, b, /*add=*/false, {});
  for (const auto& [target, kernel] : float_block_kernels()) {
    const Tensor result = at::empty({70, 90});
    product_in_blocks(kernel, result, a, b, /*add=*/false, {});
    EXPECT_TRUE(result.equal(first)) << name_of(target);
  }
}

TEST_P(ProductInBlocks, OfMatricesThatDoNotFitIsAnError) {
  const Tensor a = at::ones({4, 6}), b = at::ones({6, 5}), result = at::empty({4, 5});
  EXPECT_THROW(multiply(result, a, a), ShapeError);
  EXPECT_THROW(multiply(at::empty({4, 4}), a, b), ShapeError);
  EXPECT_THROW(multiply(at::empty({5, 4}).t(), a, b), ShapeError);
  EXPECT_THROW(multiply(result, a, b, false, at::ones({1})), ShapeError);
  EXPECT_THROW(multiply(result, a, b, false, at::ones({1}).expand({5})), ShapeError);
  EXPECT_THROW(multiply(result, at::ones({1, 4, 6}), b), ShapeError);
}

TEST_P(ProductInBlocks, OfNumbersThatAreNotFiniteIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), -3.4e38F}) {
    const Tensor a = at::ones({40, 64}), result = at::empty({40, 33});
    a[3][7] = bad;
    multiply(result, a, at::full({64, 33}, 2.F));
    EXPECT_FALSE(result[3].isfinite().any().item<bool>()) << bad;
    EXPECT_EQ(result[4].eq(128).sum().item<int64_t>(), 33) << bad;
  }
}

/// Training's functions with three products of bf16 for one of float.
class Bf16x3Product : public testing::Test {
 protected:
  void SetUp() override {
    if (!cpu_has(CpuTarget::kAmx)) GTEST_SKIP() << "this processor has no tiles";
  }
};

struct Outcome {
  Tensor result;
  std::vector<Tensor> gradients;
};

/// A function's result, and its gradients in `direction`.
Outcome outcome_of(const std::function<Tensor(const Inputs&)>& f, const Inputs& values, const Tensor& direction) {
  Inputs inputs;
  for (const Tensor& value : values) inputs.push_back(value.clone().requires_grad_(true));
  Outcome outcome = {f(inputs), {}};
  (outcome.result * direction).sum().backward();
  for (const Tensor& input : inputs) outcome.gradients.push_back(input.grad());
  return outcome;
}

/// Expects the result of f in bf16x3, and its gradients in `direction`, to be within 2^-16 of those in float, relative to
/// their norms.
void expect_near_float(const std::function<Tensor(const Inputs&, Precision)>& f, const Inputs& values, const Tensor& direction) {
  const Outcome in_float = outcome_of([&](const Inputs& in) { return f(in, Precision::kFp32); }, values, direction);
  const Outcome in_parts = outcome_of([&](const Inputs& in) { return f(in, Precision::kBf16x3); }, values, direction);
  const auto expect_near = [](const Tensor& actual, const Tensor& expected) {
    EXPECT_LE((actual - expected).norm().item<double>(), std::pow(2, -16) * expected.norm().item<double>());
  };
  expect_near(in_parts.result, in_float.result);
  EXPECT_FALSE(in_parts.result.equal(in_float.result)) << "was in float";
  for (size_t i = 0; i < values.size(); ++i) {
    SCOPED_TRACE("gradient of input " + std::to_string(i));
    expect_near(in_parts.gradients[i], in_float.gradients[i]);
  }
}

TEST_F(Bf16x3Product, IsNearThatOfFloatInLinearLayers) {
  expect_near_float([](const Inputs& in, Precision precision) { return lacuna::linear(in[0], in[1], in[2], precision); },
                    {at::randn({33, 48}), at::randn({24, 48}), at::randn({24})}, at::randn({33, 24}));
}

TEST_F(Bf16x3Product, IsNearThatOfFloatInTheLoss) {
  const Tensor targets = at::randint(90, {kLossRows + 70}, at::kLong);
  expect_near_float([&](const Inputs& in, Precision precision) { return projection_loss(in[0], in[1], targets, 0.1, precision).loss; },
                    {at::randn({kLossRows + 70, 32}), at::randn({90, 32})}, at::ones({}, at::kDouble));
}

TEST(Bf16x3Linear, LeavesDoubleAlone) {
  const Tensor x = at::randn({3, 8}, at::kDouble), w = at::randn({5, 8}, at::kDouble);
  EXPECT_TRUE(lacuna::linear(x, w, Tensor(), Precision::kBf16x3).equal(lacuna::linear(x, w, Tensor())));
}

}  // namespace
}  // namespace lacuna
