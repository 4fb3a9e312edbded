#include "kernels/activation.h"

#include "compare.h"
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

class Gelu : public RowKernelSets {};
INSTANTIATE_TEST_SUITE_P(, Gelu, testing::ValuesIn(row_kernel_sets()), name_of_set);

/// Of double, which LibTorch works out to all its digits; from numbers whose result is lost in rounding to those where Phi is 0 or 1.
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
