#include "attention/norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/yaml.h"

namespace lacuna {
namespace {

Tensor rms(const Tensor& c) {
  return c / at::sqrt((c * c).mean(1, true) + 1e-8);
}

std::shared_ptr<AttentionNorm> make(const std::string& name, const std::string& options = "{}") {
  return make_attention_norm(name, parse_yaml(options, "test"), 48, 9);
}

Tensor context() {
  at::manual_seed(1);
  return at::randn({5, 48}) * 3;
}

TEST(AttentionNorm, NoneLeavesTheContextAsItIs) {
  EXPECT_TRUE(at::equal(make("none")->forward(context()), context()));
  EXPECT_TRUE(make("none")->parameters().empty());
}

TEST(AttentionNorm, RmsDividesByTheRootMeanSquare) {
  EXPECT_TRUE(at::allclose(make("rms", "{gain_init: ones}")->forward(context()), rms(context()), 1e-5, 1e-6));
}

TEST(AttentionNorm, RmsStartsWithAGainFromXaviersRange) {
  const Tensor gain = make("rms")->named_parameters()["gain"].detach();
  const double bound = std::sqrt(3.0 / 48);
  EXPECT_LE(gain.abs().max().item<double>(), bound);
  EXPECT_NEAR(gain.square().mean().item<double>(), 1.0 / 48, 0.01);
  EXPECT_TRUE(at::equal(gain, make("rms")->named_parameters()["gain"].detach())) << "drawn from the key alone";
}

TEST(AttentionNorm, GatedRmsIsItsFormula) {
  const auto norm = make("gated_rms");
  const Tensor gate = norm->named_parameters()["gate"].detach();
  EXPECT_TRUE(at::equal(norm->named_parameters()["gain"].detach(), at::ones({48})));
  EXPECT_TRUE(at::allclose(norm->forward(context()), rms(context()) * at::sigmoid(gate * context()), 1e-5, 1e-6));
}

TEST(AttentionNorm, LayerIsLayerNorm) {
  EXPECT_TRUE(at::allclose(make("layer")->forward(context()), at::layer_norm(context(), {48}), 1e-5, 1e-6));
}

TEST(AttentionNorm, RmsOfANullContextIsZero) {
  for (const char* name : {"rms", "gated_rms"}) EXPECT_EQ(make(name)->forward(at::zeros({2, 48})).abs().max().item<double>(), 0) << name;
}

TEST(AttentionNorm, HasTheGradientOfFiniteDifferences) {
  for (const char* name : {"rms", "gated_rms", "layer"}) {
    const auto norm = make(name);
    norm->to(at::kDouble);
    const Tensor c = context().to(at::kDouble).narrow(0, 0, 2).requires_grad_(), direction = at::randn({2, 48}, at::kDouble);
    (norm->forward(c) * direction).sum().backward();
    const at::NoGradGuard no_gradients;
    const Tensor step = at::randn({2, 48}, at::kDouble);
    const double up = (norm->forward(c + 1e-6 * step) * direction).sum().item<double>();
    const double down = (norm->forward(c - 1e-6 * step) * direction).sum().item<double>();
    EXPECT_NEAR((c.grad() * step).sum().item<double>(), (up - down) / 2e-6, 1e-7) << name;
  }
}

}  // namespace
}  // namespace lacuna
