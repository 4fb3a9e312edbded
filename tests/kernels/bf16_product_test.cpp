#include "kernels/bf16_product.h"

#include "compare.h"
#include "kernels/linear.h"
#include "kernels/projection_loss.h"

namespace lacuna {
namespace {

/// Values that bf16 holds exactly, so that products in float and in bf16 differ by the order of their sums only.
Tensor exact(at::IntArrayRef sizes) {
  return rounded_to_bf16(at::randn(sizes)).to(at::kFloat);
}

/// Of a result: sums of some hundred products in another order; where the library rounds the result to bf16 (AMD), 2^-8 of it.
double tolerance() {
  return __builtin_cpu_is("amd") ? 1.0 / 256 : 2e-5;
}

void expect_near(const Tensor& actual, const Tensor& expected, double relative) {
  EXPECT_LE((actual - expected).abs().max().item<double>(), relative * (1 + expected.abs().max().item<double>()));
}

TEST(Bf16Product, EqualsThatOfFloatForEveryLayout) {
  const int64_t m = 37, k = 72, n = 50;
  const Tensor a = exact({m, k}), b = exact({k, n}), expected = a.mm(b);
  for (const bool a_by_rows : {true, false})
    for (const bool b_by_rows : {true, false}) {
      const Tensor left = a_by_rows ? rounded_to_bf16(a) : rounded_to_bf16(a.t().contiguous()).t();
      const Tensor right = b_by_rows ? rounded_to_bf16(b) : rounded_to_bf16(b.t().contiguous()).t();
      const Tensor result = at::full({m, n}, 7.f);
      bf16_product(result, left, right);
      expect_near(result, expected, tolerance());
      bf16_product(result, left, right, /*add=*/true);
      expect_near(result, 2 * expected, tolerance());
    }
}

TEST(Bf16Product, OfOneRowOrColumn) {
  for (const auto& [m, k, n] : {std::tuple{1, 64, 1}, {1, 64, 9}, {9, 64, 1}, {5, 1, 6}}) {
    const Tensor a = exact({m, k}), b = exact({k, n}), result = at::empty({m, n});
    bf16_product(result, rounded_to_bf16(a), rounded_to_bf16(b));
    expect_near(result, a.mm(b), tolerance());
  }
}

TEST(Bf16Product, OfNoRowsIsNothing) {
  const Tensor result = at::ones({4, 3});
  bf16_product(result, rounded_to_bf16(at::empty({4, 0})), rounded_to_bf16(at::empty({0, 3})));
  EXPECT_EQ(result.abs().sum().item<double>(), 0);
}

/// Gradients of (f(x, w, b) * direction).sum(): direction is exact in bf16, as all factors then are.
TEST(Bf16Linear, HasResultAndGradientsOfFloat) {
  std::vector<Tensor> in16 = {exact({33, 48}), exact({24, 48}), exact({24})}, in32;
  for (Tensor& x : in16) {
    in32.push_back(x.clone().requires_grad_(true));
    x.requires_grad_(true);
  }
  const Tensor direction = exact({33, 24});
  const Tensor result = lacuna::linear(in16[0], in16[1], in16[2], /*in_bf16=*/true), expected = lacuna::linear(in32[0], in32[1], in32[2]);
  expect_near(result, expected, tolerance());
  (result * direction).sum().backward();
  (expected * direction).sum().backward();
  for (size_t i = 0; i < in16.size(); ++i) expect_near(in16[i].grad(), in32[i].grad(), tolerance());
}

TEST(Bf16Linear, RoundsFactorsOnly) {
  const Tensor x = at::full({1, 1}, 1.f + 1.f / 512), w = at::full({1, 1}, 3.f);  // x is half-way between two numbers of bf16
  EXPECT_EQ(lacuna::linear(x, w, Tensor(), true).item<float>(), 3.f);
  EXPECT_EQ(lacuna::linear(at::full({1, 1}, 1.f), at::full({1, 1}, 1.f), at::full({1}, 1.f / 512), true).item<float>(), 1.f + 1.f / 512);
}

TEST(Bf16Linear, LeavesDoubleAlone) {
  const Tensor x = at::randn({3, 8}, at::kDouble), w = at::randn({5, 8}, at::kDouble);
  EXPECT_TRUE(lacuna::linear(x, w, Tensor(), true).equal(lacuna::linear(x, w, Tensor())));
}

/// The gradient of the logits is rounded on its way back: 2^-9 of each of its numbers, less in their sums.
TEST(Bf16ProjectionLoss, IsThatOfFloatWithRoundedGradients) {
  const Tensor targets = at::randint(90, {kLossRows + 70}, at::kLong);
  std::vector<Tensor> hidden, weight;
  for (int i = 0; i < 2; ++i) {
    hidden.push_back((i == 0 ? exact({kLossRows + 70, 32}) : hidden[0].detach().clone()).requires_grad_(true));
    weight.push_back((i == 0 ? exact({90, 32}) : weight[0].detach().clone()).requires_grad_(true));
  }
  const ProjectionLoss with = projection_loss(hidden[0], weight[0], targets, 0.1, /*in_bf16=*/true);
  const ProjectionLoss without = projection_loss(hidden[1], weight[1], targets, 0.1);
  EXPECT_NEAR(with.loss.item<double>() / without.loss.item<double>(), 1, tolerance());
  with.loss.backward();
  without.loss.backward();
  expect_near(hidden[0].grad(), hidden[1].grad(), 1.0 / 256);
  expect_near(weight[0].grad(), weight[1].grad(), 1.0 / 256);
}

}  // namespace
}  // namespace lacuna
