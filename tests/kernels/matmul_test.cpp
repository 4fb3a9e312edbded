#include "kernels/matmul.h"

#include "compare.h"
#include "kernels/layer_products.h"
#include "kernels/layers.h"
#include "kernels/profile.h"
#include "kernels/projection_loss.h"
#include "kernels/reference.h"

namespace lacuna {
namespace {

/// Values that bf16 holds exactly, so that products in float and in bf16 differ by the order of their sums only.
Tensor exact(at::IntArrayRef sizes) {
  return rounded_to_bf16(at::randn(sizes)).to(at::kFloat);
}

/// Relative to the largest number of a result: sums of some hundred products in another order.
constexpr double kTolerance = 2e-5;

void expect_near(const Tensor& actual, const Tensor& expected, double relative) {
  EXPECT_LE((actual - expected).abs().max().item<double>(), relative * (1 + expected.abs().max().item<double>()));
}

/// Rounded; by columns if so wanted, and a part of something larger.
Tensor laid_out(const Tensor& matrix, bool by_rows) {
  const Tensor rounded = rounded_to_bf16(by_rows ? matrix : matrix.t().contiguous());
  const Tensor part = at::constant_pad_nd(rounded, {0, 3}, 9).narrow(1, 0, rounded.size(1));
  return by_rows ? part : part.t();
}

/// Does what matmul_into does with bf16 factors on the CPU, by one of bf16_targets().
void matmul_bf16_into_by(CpuTarget target, const Tensor& result, const Tensor& a, const Tensor& b, bool add) {
  if (target == CpuTarget::kAmx) return product_in_blocks(amx::kBf16Blocks, result, a, b, add, {});
  if (target == CpuTarget::kAvx512Bf16) return product_in_blocks(avx512_bf16::kBf16Blocks, result, a, b, add, {});
  product_in_blocks(float_block_kernels().front().kernel, result, a.to(at::kFloat), b.to(at::kFloat), add, {});
}

TEST(MatmulOfBf16, EqualsThatOfFloatForEveryTargetShapeAndLayout) {
  for (const CpuTarget target : bf16_targets())
    for (const auto& [m, k, n] :
         {std::tuple{37, 72, 50}, {64, 96, 64}, {33, 1100, 31}, {70, 5, 130}, {1, 64, 1}, {1, 64, 9}, {9, 64, 1}, {5, 1, 6}, {40, 513, 33}})
      for (const bool a_by_rows : {true, false})
        for (const bool b_by_rows : {true, false}) {
          SCOPED_TRACE(std::string(name_of(target)) + ", " + std::to_string(m) + " x " + std::to_string(k) + " x " + std::to_string(n) +
                       (a_by_rows ? ", by rows" : ", by columns") + (b_by_rows ? ", by rows" : ", by columns"));
          const Tensor a = exact({m, k}), b = exact({k, n}), expected = a.mm(b);
          const Tensor room = at::full({m, n + 5}, 7.F), result = room.narrow(1, 0, n);
          matmul_bf16_into_by(target, result, laid_out(a, a_by_rows), laid_out(b, b_by_rows), /*add=*/false);
          expect_near(result, expected, kTolerance);
          matmul_bf16_into_by(target, result, laid_out(a, a_by_rows), laid_out(b, b_by_rows), /*add=*/true);
          expect_near(result, 2 * expected, kTolerance);
          EXPECT_TRUE(room.narrow(1, n, 5).eq(7).all().item<bool>()) << "wrote beside the result";
        }
}

TEST(MatmulOfBf16, DependsOnNeitherThreadsNorOtherRows) {
  const Tensor a = rounded_to_bf16(at::randn({700, 600})), b = rounded_to_bf16(at::randn({600, 90}));
  for (const CpuTarget target : bf16_targets()) {
    const Tensor all = at::empty({700, 90}), by_one = at::empty({700, 90}), some = at::empty({45, 70});
    matmul_bf16_into_by(target, all, a, b, /*add=*/false);
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    matmul_bf16_into_by(target, by_one, a, b, /*add=*/false);
    at::set_num_threads(threads);
    EXPECT_TRUE(by_one.equal(all));
    matmul_bf16_into_by(target, some, a.narrow(0, 0, 45), b.narrow(1, 0, 70), /*add=*/false);
    EXPECT_TRUE(some.equal(all.narrow(0, 0, 45).narrow(1, 0, 70)));
  }
}

TEST(MatmulOfBf16, OfNoRowsIsZero) {
  const Tensor result = at::ones({4, 3});
  matmul_into(result, rounded_to_bf16(at::empty({4, 0})), rounded_to_bf16(at::empty({0, 3})), /*add=*/false);
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
  const Tensor result = lacuna::linear(in16[0], in16[1], in16[2], Precision::kBf16), expected = lacuna::linear(in32[0], in32[1], in32[2]);
  expect_near(result, expected, kTolerance);
  (result * direction).sum().backward();
  (expected * direction).sum().backward();
  for (size_t i = 0; i < in16.size(); ++i) expect_near(in16[i].grad(), in32[i].grad(), kTolerance);
}

TEST(Bf16Linear, RoundsFactorsOnly) {
  const Tensor x = at::full({1, 1}, 1.f + 1.f / 512), w = at::full({1, 1}, 3.f);  // x is half-way between two numbers of bf16
  EXPECT_EQ(lacuna::linear(x, w, Tensor(), Precision::kBf16).item<float>(), 3.f);
  EXPECT_EQ(lacuna::linear(at::full({1, 1}, 1.f), at::full({1, 1}, 1.f), at::full({1}, 1.f / 512), Precision::kBf16).item<float>(),
            1.f + 1.f / 512);
}

TEST(Bf16Linear, LeavesDoubleAlone) {
  const Tensor x = at::randn({3, 8}, at::kDouble), w = at::randn({5, 8}, at::kDouble);
  EXPECT_TRUE(lacuna::linear(x, w, Tensor(), Precision::kBf16).equal(lacuna::linear(x, w, Tensor())));
}

/// On the device `meta` tensors have types and shapes alone: which these are on a GPU shows without one.
TEST(Bf16Linear, GivesAndTakesRoundedRowsOnOtherDevicesToo) {
  const auto rows = [](at::IntArrayRef sizes, at::ScalarType type) {
    return at::empty(sizes, at::TensorOptions(type).device(at::kMeta)).requires_grad_(true);
  };
  const Tensor x = rows({6, 8}, at::kBFloat16), w = rows({5, 8}, at::kFloat), b = rows({5}, at::kFloat);
  const Tensor plain = lacuna::linear(x, w, b, Precision::kBf16), rounded = lacuna::linear(x, w, b, Precision::kBf16, /*is_rounded=*/true);
  EXPECT_EQ(plain.scalar_type(), at::kFloat);
  EXPECT_EQ(rounded.scalar_type(), at::kBFloat16);
  rounded.backward(at::empty_like(rounded));
  EXPECT_EQ(x.grad().scalar_type(), at::kBFloat16);
  for (const Tensor& parameter : {w, b}) EXPECT_EQ(parameter.grad().scalar_type(), at::kFloat);
}

class Bf16ProjectionLoss : public RowKernelSets {};
INSTANTIATE_TEST_SUITE_P(, Bf16ProjectionLoss, testing::ValuesIn(row_kernel_sets()), name_of_set);

/// The gradient of the logits is rounded on its way back: 2^-9 of each of its numbers, less in their sums.
TEST_P(Bf16ProjectionLoss, IsThatOfFloatWithRoundedGradients) {
  const Tensor targets = at::randint(90, {kRoundedLossRows + 70}, at::kLong);
  std::vector<Tensor> hidden, weight;
  for (int i = 0; i < 2; ++i) {
    hidden.push_back((i == 0 ? exact({kRoundedLossRows + 70, 32}) : hidden[0].detach().clone()).requires_grad_(true));
    weight.push_back((i == 0 ? exact({90, 32}) : weight[0].detach().clone()).requires_grad_(true));
  }
  const ProjectionLoss with = projection_loss(hidden[0], weight[0], targets, 0.1, Precision::kBf16);
  const ProjectionLoss without = projection_loss(hidden[1], weight[1], targets, 0.1);
  EXPECT_NEAR(with.loss.item<double>() / without.loss.item<double>(), 1, kTolerance);
  with.loss.backward();
  without.loss.backward();
  expect_near(hidden[0].grad(), hidden[1].grad(), 1.0 / 256);
  expect_near(weight[0].grad(), weight[1].grad(), 1.0 / 256);
}

/// What other devices run.
TEST_P(Bf16ProjectionLoss, IsTheSameInOperationsOfAten) {
  const Tensor targets = at::randint(90, {kRoundedLossRows + 70}, at::kLong);
  const Tensor numbers = at::randn({kRoundedLossRows + 70, 32}), table = at::randn({90, 32}), biases = at::randn({90});
  const auto run = [&](const auto& loss_of) {
    const Tensor hidden = numbers.clone().requires_grad_(true), weight = table.clone().requires_grad_(true),
                 bias = biases.clone().requires_grad_(true);
    const Tensor loss = loss_of(hidden, weight, targets, 0.1, Precision::kBf16, bias).loss;
    loss.backward();
    return std::vector<Tensor>{loss.detach(), hidden.grad(), weight.grad(), bias.grad()};
  };
  const std::vector<Tensor> found = run(reference::projection_loss), expected = run(projection_loss);
  EXPECT_NEAR(found[0].item<double>() / expected[0].item<double>(), 1, kTolerance);
  for (const size_t i : {1, 2, 3}) expect_near(found[i], expected[i], 1.0 / 256);
}

TEST_P(Bf16ProjectionLoss, RoundsFactorsInOperationsOfAten) {
  const at::NoGradGuard no_gradients;
  const Tensor weight = at::tensor({0.0F, 1.0F}).view({2, 1}), targets = at::zeros({1}, at::kLong);
  const auto loss = [&](float hidden, Precision precision) {
    return reference::projection_loss(at::full({1, 1}, hidden), weight, targets, 0, precision).loss.item<double>();
  };
  EXPECT_EQ(loss(1.F + 1.F / 512, Precision::kBf16), loss(1.F, Precision::kBf16));
  EXPECT_NE(loss(1.F + 1.F / 512, Precision::kFp32), loss(1.F, Precision::kFp32));
}

}  // namespace
}  // namespace lacuna
