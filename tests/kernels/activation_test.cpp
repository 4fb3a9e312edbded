#include <limits>

#include "compare.h"
#include "kernels/layers.h"
#include "kernels/reference.h"

namespace lacuna {
namespace {

class ActivationDropout : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, ActivationDropout, testing::ValuesIn(kernel_cases()), name_of_case);

TEST_P(ActivationDropout, EqualsItsReference) {
  for (const bool is_gelu : {false, true})
    for (const double rate : {0.0, 0.4}) {
      const Dropout dropout = a_dropout(rate, 50);
      expect_same([&](const Inputs& in) { return activation_dropout(in[0], is_gelu, dropout); },
                  [&](const Inputs& in) { return reference::activation_dropout(in[0], is_gelu, dropout); }, {spiky({50, 200}, type())});
    }
}

constexpr float kInfinite = std::numeric_limits<float>::infinity(), kNoNumber = std::numeric_limits<float>::quiet_NaN();

TEST_P(ActivationDropout, OfReluPassesTheGradientOfAllThatIsNotZero) {
  const Tensor x = at::tensor({-1.f, 0.f, -0.f, 2.f, kInfinite, -kInfinite, kNoNumber}).to(type()).unsqueeze(0).requires_grad_(true);
  const Tensor y = activation_dropout(x, /*is_gelu=*/false, Dropout{});
  y.backward(at::full_like(y, 3));
  EXPECT_TRUE(x.grad().equal(at::tensor({0.f, 0.f, 0.f, 3.f, 3.f, 0.f, 3.f}).to(type()).unsqueeze(0))) << x.grad();
  EXPECT_TRUE(y[0][6].isnan().item<bool>());
}

TEST_P(ActivationDropout, OfGeluHasItsLimitsFarAway) {
  const Tensor x = at::tensor({-kInfinite, kInfinite, -3e38f, 3e38f}).to(type()).unsqueeze(0).requires_grad_(true);
  const Tensor y = activation_dropout(x, /*is_gelu=*/true, Dropout{});
  y.backward(at::ones_like(y));
  EXPECT_TRUE(y.equal(at::tensor({0.f, kInfinite, 0.f, 3e38f}).to(type()).unsqueeze(0))) << y;
  EXPECT_TRUE(at::allclose(x.grad(), at::tensor({0.f, 1.f, 0.f, 1.f}).to(type()).unsqueeze(0), 0, 1e-12)) << x.grad();
}

class Gelu : public RowKernelSets {};
INSTANTIATE_TEST_SUITE_P(, Gelu, testing::ValuesIn(row_kernel_sets()), name_of_set);

/// Compares with LibTorch's GELU in double, on numbers from those whose result is lost in rounding to those where Phi is 0
/// or 1.
TEST_P(Gelu, OfFloatIsWithinItsStatedErrorOfDouble) {
  std::vector<Tensor> results, gradients;
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const Tensor x = at::cat({at::linspace(-8, 8, 20001, at::kFloat), at::tensor({-1e4f, -40.f, -1e-6f, 1e-6f, 40.f, 1e4f})})
                         .to(type)
                         .unsqueeze(0)
                         .requires_grad_(true);
    const Tensor y = type == at::kFloat ? activation_dropout(x, /*is_gelu=*/true, Dropout{}) : at::gelu(x);
    y.sum().backward();
    results.push_back(y.detach());
    gradients.push_back(x.grad());
  }
  const Tensor size = 1 + results[1].abs();
  constexpr double kError = 3e-7;  // that of Phi and of the exponential in the slope
  EXPECT_LT(((results[0] - results[1]).abs() / size).max().item<double>(), kError);
  EXPECT_LT((gradients[0] - gradients[1]).abs().max().item<double>(), kError);
}

}  // namespace
}  // namespace lacuna
