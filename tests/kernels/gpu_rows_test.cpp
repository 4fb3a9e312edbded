#include "kernels/gpu_rows.h"

#include "compare.h"
#include "kernels/activation.h"
#include "kernels/bf16_product.h"
#include "kernels/projection_loss.h"
#include "kernels/reference.h"

// The row kernels for GPUs against the references on the CPU. Nothing of it runs where there is no GPU.
namespace lacuna {
namespace {

class RowsOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpu::kAreBuilt || !at::hasCUDA()) GTEST_SKIP() << "no GPU in this build or machine";
    at::manual_seed(7);
  }
};

using Function = std::function<Tensor(const Inputs&)>;

/// The same function of the same inputs, worked out on a GPU.
Function on_gpu(const Function& f) {
  return [=](const Inputs& inputs) {
    Inputs there;
    for (const Tensor& x : inputs) there.push_back(x.to(at::kCUDA));
    return f(there).cpu();
  };
}

constexpr int64_t kRows = 300;  // two blocks of sums and a part of one

using NormOfSum = ResidualNorm (*)(const ResidualEnd&, const Tensor&);

Function norm_of_sum(NormOfSum kernel, bool is_rms, bool uses_sum, const Dropout& dropout) {
  return [=](const Inputs& in) {
    const ResidualNorm result = kernel({in[0], dropout, {in[2], is_rms ? Tensor() : in[3], is_rms}}, in[1]);
    return uses_sum ? result.normed + 2 * result.sum : result.normed;
  };
}

TEST_F(RowsOnGpu, NormaliseAsTheReference) {
  for (const int64_t columns : {7, 72, 256, 520})
    for (const bool is_rms : {false, true})
      for (const bool uses_sum : {false, true})
        for (const double rate : {0.0, 0.25}) {
          SCOPED_TRACE(testing::Message() << columns << " columns, rms " << is_rms << ", sum " << uses_sum << ", dropout " << rate);
          const Dropout dropout = a_dropout(rate, kRows);
          const auto rows = [&] { return spiky({kRows, columns}, at::kFloat); };
          const auto of_columns = [&] { return spiky({columns}, at::kFloat); };
          expect_same(on_gpu(norm_of_sum(residual_norm, is_rms, uses_sum, dropout)),
                      norm_of_sum(reference::residual_norm, is_rms, uses_sum, dropout), {rows(), rows(), of_columns(), of_columns()});
        }
}

TEST_F(RowsOnGpu, NormaliseWithoutAnOutput) {
  const auto alone = [](NormOfSum kernel) {
    return [=](const Inputs& in) { return kernel({in[0], {}, {in[1], in[2], false}}, {}).normed; };
  };
  expect_same(on_gpu(alone(residual_norm)), alone(reference::residual_norm),
              {spiky({kRows, 64}, at::kFloat), spiky({64}, at::kFloat), spiky({64}, at::kFloat)});
}

TEST_F(RowsOnGpu, NormaliseToBf16ForReadersOfIt) {
  const Tensor x = spiky({kRows, 72}, at::kFloat), y = spiky({kRows, 72}, at::kFloat), gain = spiky({72}, at::kFloat);
  const auto normed = [&](NormOfSum kernel, at::Device device) {
    const Tensor leaf = x.to(device, /*dtype=*/at::kFloat, /*non_blocking=*/false, /*copy=*/true).requires_grad_();
    const ResidualNorm result = kernel({leaf, {}, {gain.to(device), {}, true}, FactorPrecision::kBf16}, y.to(device));
    result.normed.sum(at::kFloat).backward();
    return std::pair(result.normed.detach().cpu(), leaf.grad().cpu());
  };
  const auto [found, gradient] = normed(residual_norm, at::kCUDA);
  const auto [expected, expected_gradient] = normed(reference::residual_norm, at::kCPU);
  EXPECT_EQ(found.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::allclose(found.to(at::kFloat), expected, /*rtol=*/0x1p-8, /*atol=*/1e-5));
  expect_close(gradient, expected_gradient, "gradient");
}

TEST_F(RowsOnGpu, ActivateAsTheReference) {
  for (const bool is_gelu : {false, true})
    for (const double rate : {0.0, 0.25}) {
      SCOPED_TRACE(testing::Message() << "gelu " << is_gelu << ", dropout " << rate);
      const Dropout dropout = a_dropout(rate, kRows);
      const auto with = [&](auto kernel) { return [=](const Inputs& in) { return kernel(in[0], is_gelu, dropout); }; };
      expect_same(on_gpu(with(activation_dropout)), with(reference::activation_dropout), {spiky({kRows, 130}, at::kFloat)});
    }
}

TEST_F(RowsOnGpu, LoseAsTheReference) {
  constexpr int64_t kVocabulary = 777, kTokens = kLossRows + 70;  // two chunks
  const Tensor targets = at::randint(kVocabulary, {kTokens}, at::kLong);
  for (const double smoothing : {0.0, 0.1}) {
    const auto with = [&](auto kernel, at::Device device) {
      return [=](const Inputs& in) { return kernel(in[0], in[1], targets.to(device), smoothing).loss.to(in[0].scalar_type()); };
    };
    const auto ours = [](const auto&... arguments) { return projection_loss(arguments...); };
    const auto in_aten = [](const auto&... arguments) { return reference::projection_loss(arguments...); };
    expect_same(on_gpu(with(ours, at::kCUDA)), with(in_aten, at::kCPU),
                {at::randn({kTokens, 32}, at::kFloat), at::randn({kVocabulary, 32}, at::kFloat)});
  }
}

TEST_F(RowsOnGpu, LoseInBf16AsTheReference) {
  const Tensor targets = at::randint(300, {100}, at::kLong);
  const Inputs inputs = {at::randn({100, 32}, at::kFloat), at::randn({300, 32}, at::kFloat)};
  const auto gradients = [&](auto kernel, at::Device device) {
    Inputs leaves;
    for (const Tensor& input : inputs)
      leaves.push_back(input.to(device, at::kFloat, /*non_blocking=*/false, /*copy=*/true).requires_grad_());
    const ProjectionLoss loss = kernel(leaves[0], leaves[1], targets.to(device), 0.1, FactorPrecision::kBf16);
    loss.loss.backward();
    return std::vector<Tensor>{loss.loss.detach().cpu(), loss.nll.cpu(), leaves[0].grad().cpu(), leaves[1].grad().cpu()};
  };
  const std::vector<Tensor> found = gradients(projection_loss, at::kCUDA), expected = gradients(reference::projection_loss, at::kCPU);
  for (size_t i = 0; i < found.size(); ++i)  // gradients of logits are rounded to 8 bits
    EXPECT_LE((found[i] - expected[i]).abs().max().item<double>(), 0x1p-7 * expected[i].abs().max().item<double>()) << "tensor " << i;
}

TEST_F(RowsOnGpu, CountTheFirstOfEqualLogits) {
  const at::NoGradGuard no_gradients;
  const Tensor hidden = at::ones({3, 1}, at::kCUDA), weight = at::ones({1000, 1}, at::kCUDA);
  weight[0][0] = 0;  // the first of the largest is 1
  const Tensor targets = at::tensor({int64_t{0}, int64_t{1}, int64_t{2}}).to(at::kCUDA);
  EXPECT_EQ(projection_loss(hidden, weight, targets, 0).correct.item<int64_t>(), 1);
}

TEST_F(RowsOnGpu, FindNoLossWhereALogitOrATargetIsNone) {
  const at::NoGradGuard no_gradients;
  const Tensor hidden = at::ones({1, 2}, at::kCUDA), weight = at::zeros({3, 2}, at::kCUDA);
  const auto nll = [&](int64_t target) {
    return projection_loss(hidden, weight, at::full({1}, target, at::TensorOptions(at::kLong).device(at::kCUDA)), 0.1).nll.item<double>();
  };
  for (const int64_t target : {-1, 3}) EXPECT_TRUE(std::isnan(nll(target))) << target;
  EXPECT_NEAR(nll(0), std::log(3.0), 1e-6);
  weight[2][0] = NAN;
  EXPECT_TRUE(std::isnan(nll(0)));
}

TEST_F(RowsOnGpu, RoundAndSumAsTheCpu) {
  const Tensor rows = spiky({kRows, 70}, at::kFloat);
  const auto [found, sums] = rounded_with_sums(rows.to(at::kCUDA));
  const auto [expected, expected_sums] = rounded_with_sums(rows);
  EXPECT_TRUE(at::equal(found.cpu(), expected));
  expect_close(sums.cpu(), expected_sums);
}

TEST_F(RowsOnGpu, MultiplyAsTheCpu) {
  const Tensor a = at::randn({40, 72}).to(at::kBFloat16), b = at::randn({72, 24}).to(at::kBFloat16), start = at::randn({40, 24});
  for (const bool adds : {false, true}) {
    const Tensor here = start.clone(), there = start.to(at::kCUDA);
    bf16_product(here, a, b, adds);
    bf16_product(there, a.to(at::kCUDA), b.to(at::kCUDA), adds);
    expect_close(there.cpu(), here, adds ? "sum" : "product");
  }
}

}  // namespace
}  // namespace lacuna
