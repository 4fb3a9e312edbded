#include "kernels/residual_norm.h"

#include "compare.h"
#include "kernels/reference.h"

namespace lacuna {
namespace {

class ResidualNormTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(, ResidualNormTest, testing::ValuesIn(kernel_cases()), name_of_case);

/// residual, output, gain, bias.
Inputs some_inputs(int64_t rows, int64_t columns, at::ScalarType type) {
  return {spiky({rows, columns}, type), spiky({rows, columns}, type), spiky({columns}, type), spiky({columns}, type)};
}

using Kernel = ResidualNorm (*)(const ResidualEnd&, const Tensor&);

/// What comes of the kernel when sum and norm are both used (pre-norm), or the norm alone (post-norm).
std::function<Tensor(const Inputs&)> whole(Kernel kernel, bool is_rms, bool uses_sum, const Dropout& dropout) {
  return [=](const Inputs& in) {
    const ResidualNorm result = kernel({in[0], dropout, {in[2], is_rms ? Tensor() : in[3], is_rms}}, in[1]);
    return uses_sum ? result.normed + 2 * result.sum : result.normed;
  };
}

TEST_P(ResidualNormTest, EqualsItsReference) {
  for (const bool is_rms : {false, true})
    for (const bool uses_sum : {false, true})
      for (const double rate : {0.0, 0.25}) {
        const Dropout dropout = a_dropout(rate, 300);
        expect_same(whole(residual_norm, is_rms, uses_sum, dropout), whole(reference::residual_norm, is_rms, uses_sum, dropout),
                    some_inputs(300, 72, type()));
      }
}

TEST_P(ResidualNormTest, WithoutOutputIsTheNormAlone) {
  const auto alone = [](Kernel kernel) { return [=](const Inputs& in) { return kernel({in[0], {}, {in[2], in[3], false}}, {}).normed; }; };
  expect_same(alone(residual_norm), alone(reference::residual_norm), some_inputs(40, 64, type()));
}

TEST_P(ResidualNormTest, AddsTheEpsilonThatIsGiven) {
  constexpr double kEpsilon = 0.5;
  const Inputs in = some_inputs(40, 64, type());
  for (const bool is_rms : {false, true}) {
    const auto with = [&](Kernel kernel) {
      return [=](const Inputs& x) { return kernel({x[0], {}, {x[2], is_rms ? Tensor() : x[3], is_rms, kEpsilon}}, x[1]).normed; };
    };
    expect_same(with(residual_norm), with(reference::residual_norm), in);
    const Tensor sum = in[0] + in[1], z = is_rms ? sum : sum - sum.mean(1, true);
    const Tensor plain = z / (z.square().mean(1, true) + kEpsilon).sqrt() * in[2];
    expect_close(with(residual_norm)(in), is_rms ? plain : plain + in[3]);
  }
}

TEST_P(ResidualNormTest, IsTheSameWithoutGradients) {
  const Inputs in = some_inputs(40, 64, type());
  const ResidualNorm with = residual_norm({in[0], {}, {in[2], in[3], false}}, in[1]);
  const at::NoGradGuard guard;
  const ResidualNorm without = residual_norm({in[0], {}, {in[2], in[3], false}}, in[1]);
  EXPECT_TRUE(with.normed.equal(without.normed));
  EXPECT_TRUE(with.sum.equal(without.sum));
}

TEST(ResidualNorm, GradientsDoNotDependOnThreads) {
  at::manual_seed(3);
  const Inputs in = some_inputs(1000, 64, at::kFloat);
  const int threads = at::get_num_threads();
  Tensor first;
  for (const int count : {1, 2, 4}) {
    at::set_num_threads(count);
    const Tensor gain = in[2].clone().requires_grad_(true);
    residual_norm({in[0], a_dropout(0.1, 1000), {gain, in[3], false}}, in[1]).normed.square().sum().backward();
    if (!first.defined()) first = gain.grad();
    EXPECT_TRUE(first.equal(gain.grad())) << count << " threads";
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace lacuna
