#include "attention/norms/norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "config/yaml.h"
#include "kernels/gpu/kernels.h"

namespace lacuna {
namespace {

Tensor rms(const Tensor& c) {
  return c / at::sqrt((c * c).mean(1, true) + 1e-8);
}

std::shared_ptr<AttentionNorm> make(const std::string& name, const std::string& options = "{}", int64_t width = 48) {
  return make_attention_norm(name, parse_yaml(options, "test"), width, 9);
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

TEST(AttentionNorm, GainOfRmsAndGateOfGatedRmsStartInXaviersRange) {
  constexpr int64_t kWidth = 4096;
  const double bound = std::sqrt(3.0 / kWidth);
  for (const auto& [norm, parameter] : {std::pair("rms", "gain"), std::pair("gated_rms", "gate")}) {
    const auto drawn = [norm = norm, parameter = parameter] { return make(norm, "{}", kWidth)->named_parameters()[parameter].detach(); };
    const Tensor first = drawn();
    EXPECT_LE(first.abs().max().item<double>(), bound) << norm;
    EXPECT_NEAR(first.square().mean().item<double>() * kWidth, 1, 0.05) << norm;  // 3.6 standard deviations
    EXPECT_NEAR(first.mean().item<double>() / bound, 0, 0.05) << norm;
    EXPECT_TRUE(at::equal(first, drawn())) << norm << ": drawn from the key alone";
  }
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
    const Tensor c = at::randn({70, 48}, at::kDouble).requires_grad_(), direction = at::randn({70, 48}, at::kDouble);
    const auto loss = [&] { return (norm->forward(c) * direction).sum(); };
    loss().backward();
    std::vector<Tensor> inputs = norm->parameters();
    inputs.push_back(c);
    const at::NoGradGuard no_gradients;
    for (const Tensor& input : inputs) {
      const Tensor step = at::randn_like(input) * 1e-6;
      input.add_(step);
      const double up = loss().item<double>();
      input.sub_(2 * step);
      const double down = loss().item<double>();
      input.add_(step);
      const double expected = (up - down) / 2;
      EXPECT_NEAR((input.grad() * step).sum().item<double>() / std::abs(expected), expected / std::abs(expected), 1e-6) << name;
    }
  }
}

TEST(AttentionNorm, IsInFloatWhatItIsInDouble) {
  constexpr double kTolerance = 1e-5;  // of the largest element: sums of 300 rows in float
  for (const char* name : {"rms", "gated_rms"}) {
    at::manual_seed(4);
    const Tensor c = at::randn({300, 48}) * 100, direction = at::randn({300, 48});  // gates open, half open and shut
    const auto run = [&](at::ScalarType type) {
      const auto norm = make(name);
      norm->to(type);
      const Tensor rows = c.clone().to(type).requires_grad_(), result = norm->forward(rows);
      (result * direction.to(type)).sum().backward();
      std::vector<Tensor> all = {result.detach(), rows.grad()};
      for (const Tensor& parameter : norm->parameters()) all.push_back(parameter.grad());
      return all;
    };
    const std::vector<Tensor> found = run(at::kFloat), expected = run(at::kDouble);
    for (size_t i = 0; i < found.size(); ++i) {
      const double worst = (found[i].to(at::kDouble) - expected[i]).abs().max().item<double>();
      EXPECT_LE(worst, kTolerance * expected[i].abs().max().item<double>()) << name << " " << i;
    }
  }
}

TEST(AttentionNorm, TakesRowsOfBf16) {
  constexpr double kTolerance = 4e-3;  // of the largest element: 2^-8, one rounding
  for (const char* name : {"none", "rms", "gated_rms", "layer"}) {
    at::manual_seed(4);
    const Tensor c = at::randn({300, 48}).to(at::kBFloat16), direction = at::randn({300, 48}).to(at::kBFloat16);
    const auto run = [&](at::ScalarType type) {
      const auto norm = make(name);
      const Tensor rows = c.to(type).clone().requires_grad_(), result = norm->forward(rows);
      result.backward(direction.to(result.scalar_type()));
      std::vector<Tensor> all = {result.detach(), rows.grad()};
      for (const Tensor& parameter : norm->parameters()) all.push_back(parameter.grad());
      return all;
    };
    const std::vector<Tensor> found = run(at::kBFloat16), expected = run(at::kFloat);
    EXPECT_EQ(found[1].scalar_type(), at::kBFloat16);
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_LE((found[i].to(at::kFloat) - expected[i]).abs().max().item<float>(), kTolerance * expected[i].abs().max().item<float>())
          << name << " " << i;
  }
}

/// By ATen, as double on a GPU. On the CPU bf16 comes to that with parameters of double.
TEST(AttentionNorm, TakesRowsOfBf16WhereItHasNoKernels) {
  for (const char* name : {"rms", "gated_rms"}) {
    at::manual_seed(4);
    const auto norm = make(name);
    norm->to(at::kDouble);
    const Tensor rounded = at::randn({30, 48}).to(at::kBFloat16).requires_grad_(), result = norm->forward(rounded);
    EXPECT_TRUE(at::allclose(result, norm->forward(rounded.detach().to(at::kDouble)), 1e-10, 1e-12)) << name;
    result.sum().backward();
    EXPECT_EQ(rounded.grad().scalar_type(), at::kBFloat16) << name;
  }
}

/// Skipped where there is no GPU.
TEST(AttentionNorm, IsOnAGpuWhatItIsOnTheCpu) {
  if (!gpu::kAreBuilt || !at::hasCUDA()) GTEST_SKIP() << "no GPU in this build or machine";
  for (const char* name : {"rms", "gated_rms"})
    for (const auto& [type, tolerance] : {std::pair(at::kFloat, 1e-5), {at::kBFloat16, 8e-3}, {at::kDouble, 1e-12}}) {
      at::manual_seed(4);
      const Tensor c = at::randn({300, 48}).to(type), direction = at::randn({300, 48}).to(type);
      const auto run = [&, type = type](at::Device device) {
        const auto norm = make(name);
        norm->to(device, type == at::kDouble ? at::kDouble : at::kFloat);
        const Tensor rows = c.to(device, type, /*non_blocking=*/false, /*copy=*/true).requires_grad_(), result = norm->forward(rows);
        EXPECT_EQ(result.scalar_type(), type);
        result.backward(direction.to(device));
        const at::NoGradGuard no_gradients;
        EXPECT_TRUE(at::equal(result, norm->forward(rows))) << "without gradients, " << name;
        std::vector<Tensor> all = {result, rows.grad()};
        for (const Tensor& parameter : norm->parameters()) all.push_back(parameter.grad());
        for (Tensor& one : all) one = one.detach().to(at::kCPU, at::kDouble);
        return all;
      };
      const std::vector<Tensor> found = run(at::kCUDA), expected = run(at::kCPU);
      for (size_t i = 0; i < found.size(); ++i) {
        const double worst = (found[i] - expected[i]).abs().max().item<double>();
        EXPECT_LE(worst, tolerance * expected[i].abs().max().item<double>()) << name << " " << type << " " << i;
      }
    }
}

TEST(AttentionNorm, DoesNotChangeABitWithTheNumberOfThreads) {
  const auto results = [](const char* name, int64_t width, int threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    at::manual_seed(2);
    const auto norm = make(name, "{}", width);
    const Tensor c = at::randn({300, width}).requires_grad_(), result = norm->forward(c);
    (result * at::randn({300, width})).sum().backward();
    at::set_num_threads(before);
    std::vector<Tensor> all = {result.detach().flatten(), c.grad().flatten()};
    for (const Tensor& parameter : norm->parameters()) all.push_back(parameter.grad());
    return at::cat(all);
  };
  for (const char* name : {"rms", "gated_rms"})
    for (const int64_t width : {24, 48}) EXPECT_TRUE(at::equal(results(name, width, 1), results(name, width, 3))) << name << " " << width;
}

/// Widths that fill no whole vectors: the elements left over are worked out by other instructions.
TEST(AttentionNorm, DoesNotChangeABitOfARowWithItsNeighbours) {
  for (const char* name : {"rms", "gated_rms"})
    for (const int64_t width : {23, 24}) {
      at::manual_seed(3);
      const auto norm = make(name, "{}", width);
      const Tensor c = at::randn({70, width}), direction = at::randn({70, width});
      const auto of_rows = [&](int64_t first, int64_t count) {
        const Tensor rows = c.narrow(0, first, count).clone().requires_grad_(), result = norm->forward(rows);
        (result * direction.narrow(0, first, count)).sum().backward();
        const at::NoGradGuard no_gradients;
        EXPECT_TRUE(at::equal(result, norm->forward(rows))) << "without gradients, " << name << " " << width;
        return std::pair(result.detach(), rows.grad());
      };
      const auto [results, gradients] = of_rows(0, 70);
      for (int64_t row = 0; row < 70; ++row) {
        const auto [result, gradient] = of_rows(row, 1);
        EXPECT_TRUE(at::equal(result[0], results[row])) << name << " " << width << " row " << row;
        EXPECT_TRUE(at::equal(gradient[0], gradients[row])) << name << " " << width << " row " << row;
      }
    }
}

}  // namespace
}  // namespace lacuna
