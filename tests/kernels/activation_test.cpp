#include <limits>

#include "compare.h"
#include "kernels/gated_activation.h"
#include "kernels/layers.h"
#include "kernels/reference.h"

namespace lacuna {
namespace {

class ActivationDropout : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, ActivationDropout, testing::ValuesIn(kernel_cases()), name_of_case);

TEST_P(ActivationDropout, EqualsItsReference) {
  for (const Activation activation : kActivations)
    for (const double rate : {0.0, 0.4}) {
      const Dropout dropout = a_dropout(rate, 50);
      expect_same([&](const Inputs& in) { return activation_dropout(in[0], activation, dropout); },
                  [&](const Inputs& in) { return reference::activation_dropout(in[0], activation, dropout); }, {spiky({50, 200}, type())});
    }
}

constexpr float kInfinite = std::numeric_limits<float>::infinity(), kNoNumber = std::numeric_limits<float>::quiet_NaN();

TEST_P(ActivationDropout, OfReluPassesTheGradientOfAllThatIsNotZero) {
  const Tensor x = at::tensor({-1.f, 0.f, -0.f, 2.f, kInfinite, -kInfinite, kNoNumber}).to(type()).unsqueeze(0).requires_grad_(true);
  const Tensor y = activation_dropout(x, Activation::kRelu, Dropout{});
  y.backward(at::full_like(y, 3));
  EXPECT_TRUE(x.grad().equal(at::tensor({0.f, 0.f, 0.f, 3.f, 3.f, 0.f, 3.f}).to(type()).unsqueeze(0))) << x.grad();
  EXPECT_TRUE(y[0][6].isnan().item<bool>());
}

TEST_P(ActivationDropout, OfGeluAndSwishHasItsLimitsFarAway) {
  for (const Activation activation : {Activation::kGelu, Activation::kSwish}) {
    const Tensor x = at::tensor({-kInfinite, kInfinite, -3e38f, 3e38f, kNoNumber}).to(type()).unsqueeze(0).requires_grad_(true);
    const Tensor y = activation_dropout(x, activation, Dropout{});
    y.backward(at::ones_like(y));
    const Tensor numbers = y.narrow(1, 0, 4), slopes = x.grad().narrow(1, 0, 4);
    EXPECT_TRUE(at::allclose(numbers, at::tensor({0.f, kInfinite, 0.f, 3e38f}).to(type()).unsqueeze(0), 0, 1e-35)) << y;
    EXPECT_TRUE(at::allclose(slopes, at::tensor({0.f, 1.f, 0.f, 1.f}).to(type()).unsqueeze(0), 0, 1e-12)) << x.grad();
    EXPECT_TRUE(y[0][4].isnan().item<bool>() && x.grad()[0][4].isnan().item<bool>()) << y << x.grad();
  }
}

class SmoothActivation : public RowKernelSets {};
INSTANTIATE_TEST_SUITE_P(, SmoothActivation, testing::ValuesIn(row_kernel_sets()), name_of_set);

/// Compares with LibTorch's in double, on numbers from those whose result is lost in rounding to those where the factor of x is 0 or 1.
void expect_stated_error(Activation activation, Tensor (*of_double)(const Tensor&)) {
  std::vector<Tensor> results, gradients;
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const Tensor x = at::cat({at::linspace(-8, 8, 20001, at::kFloat), at::tensor({-1e4f, -40.f, -1e-6f, 1e-6f, 40.f, 1e4f})})
                         .to(type)
                         .unsqueeze(0)
                         .requires_grad_(true);
    const Tensor y = type == at::kFloat ? activation_dropout(x, activation, Dropout{}) : of_double(x);
    y.sum().backward();
    results.push_back(y.detach());
    gradients.push_back(x.grad());
  }
  const Tensor size = 1 + results[1].abs();
  constexpr double kError = 3e-7;  // that of Phi or the sigmoid, and of the exponential in the slope
  EXPECT_LT(((results[0] - results[1]).abs() / size).max().item<double>(), kError);
  EXPECT_LT((gradients[0] - gradients[1]).abs().max().item<double>(), kError);
}

TEST_P(SmoothActivation, OfFloatIsWithinItsStatedErrorOfDouble) {
  expect_stated_error(Activation::kGelu, [](const Tensor& x) { return at::gelu(x); });
  expect_stated_error(Activation::kSwish, [](const Tensor& x) { return at::silu(x); });
}

TEST_P(ActivationDropout, OfSwigluEqualsItsReference) {
  for (const double rate : {0.0, 0.4}) {
    const Dropout dropout = a_dropout(rate, 50);
    expect_same([&](const Inputs& in) { return swiglu_dropout(in[0], dropout); },
                [&](const Inputs& in) { return reference::swiglu_dropout(in[0], dropout); }, {spiky({50, 144}, type())});
  }
}

TEST_P(ActivationDropout, OfSwigluIsTheFormula) {
  const Tensor x = at::tensor({1.0, -2.0, 3.0, 0.5}, at::kDouble).to(type()).unsqueeze(0);  // two gates, two values
  const at::NoGradGuard no_gradients;
  expect_close(swiglu_dropout(x, {}), at::tensor({2.1931757358900147, -0.11920292202211757}, at::kDouble).unsqueeze(0));
}

TEST_P(ActivationDropout, OfSwishIsTheFormula) {
  const Tensor x = at::tensor({-2.0, 0.0, 1.0}, at::kDouble).to(type()).unsqueeze(0).requires_grad_(true);
  const Tensor y = activation_dropout(x, Activation::kSwish, Dropout{});
  y.backward(at::ones_like(y));
  expect_close(y, at::tensor({-0.2384058440442351, 0.0, 0.7310585786300049}, at::kDouble).unsqueeze(0));  // x / (1 + e^-x)
  expect_close(x.grad(), at::tensor({-0.09078424878489547, 0.5, 0.9276705118714869}, at::kDouble).unsqueeze(0));
}

}  // namespace
}  // namespace lacuna
