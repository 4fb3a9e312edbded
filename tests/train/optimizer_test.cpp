#include "train/optimizer.h"

#include <gmock/gmock.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include <cmath>

#include "base/error.h"
#include "train/adam.h"

namespace lacuna {
namespace {

using Parameters = std::vector<std::pair<std::string, at::Tensor>>;

Parameters two_parameters(at::ScalarType dtype) {
  const at::TensorOptions options(dtype);
  return {{"a", at::linspace(-1, 2, 21, options).view({3, 7}).requires_grad_()}, {"b", at::linspace(0.5, 3, 5, options).requires_grad_()}};
}

at::Tensor gradient_of(const at::Tensor& parameter, int64_t step) {
  return (parameter.detach() * 1.7 + static_cast<double>(step)).sin();
}

TrainOptions options_with(OptimizerType type, double weight_decay) {
  TrainOptions options;
  options.optimizer = type;
  options.weight_decay = weight_decay;
  options.clip_norm = 0;
  return options;
}

/// Both make 50 updates of the same parameters; the largest difference at the end.
template <class TheirOptimizer, class TheirOptions>
double difference_from_libtorch(OptimizerType type, double weight_decay) {
  const Parameters ours = two_parameters(at::kDouble), theirs = two_parameters(at::kDouble);
  const TrainOptions options = options_with(type, weight_decay);
  Optimizer optimizer(FlatParameters(ours), options);
  TheirOptimizer reference({theirs[0].second, theirs[1].second},
                           TheirOptions(1e-2).betas({options.beta1, options.beta2}).eps(options.epsilon).weight_decay(weight_decay));
  for (int64_t step = 0; step < 50; ++step) {
    for (const auto& [name, parameter] : ours) parameter.mutable_grad() = gradient_of(parameter, step) * 3;
    for (const auto& [name, parameter] : theirs) parameter.mutable_grad() = gradient_of(parameter, step);
    optimizer.update(1e-2, 1.0 / 3);
    reference.step();
  }
  double difference = 0;
  for (size_t i = 0; i < ours.size(); ++i)
    difference = std::max(difference, (ours[i].second - theirs[i].second).abs().max().template item<double>());
  return difference;
}

TEST(Optimizer, AdamIsLibTorchs) {
  EXPECT_LT((difference_from_libtorch<torch::optim::Adam, torch::optim::AdamOptions>(OptimizerType::kAdam, 0.1)), 1e-12);
}

TEST(Optimizer, AdamWIsLibTorchs) {
  EXPECT_LT((difference_from_libtorch<torch::optim::AdamW, torch::optim::AdamWOptions>(OptimizerType::kAdamW, 0.1)), 1e-12);
}

TEST(Optimizer, BringsParametersBackIntoTheirRanges) {
  const Parameters parameters = two_parameters(at::kFloat);  // b: from 0.5 to 3
  TrainOptions options = options_with(OptimizerType::kAdam, 0);
  options.ema_decay = 0.9;
  Optimizer optimizer(FlatParameters(parameters), options, {{"b", 0.75, 2.5}});
  const auto range_of = [](const at::Tensor& values) { return std::pair(values.min().item<double>(), values.max().item<double>()); };
  for (int step = 0; step < 3; ++step) {
    for (const auto& [name, parameter] : parameters) parameter.mutable_grad() = at::linspace(1, -1, parameter.numel()).view_as(parameter);
    optimizer.update(1, 1);
    EXPECT_EQ(range_of(parameters[1].second), std::pair(0.75, 2.5));
    EXPECT_EQ(range_of(optimizer.ema_weights().at("b")), std::pair(0.75, 2.5));
  }
  EXPECT_LT(range_of(parameters[0].second).first, -1);
}

TEST(Optimizer, OnePassOverMemoryIsThePlainReference) {
  const at::TensorOptions flat(at::kDouble);
  const auto buffers = [&] {
    return AdamBuffers{at::linspace(-1, 1, 40000, flat), at::linspace(0, 1, 40000, flat), at::linspace(1, 2, 40000, flat),
                       at::linspace(-2, 2, 40000, flat)};
  };
  // One longer than a chunk, one without a gradient, and elements of the buffers that are no parameter's.
  const PlacedGradients gradients = {{16, 30000, at::linspace(2, -3, 30000, flat).view({300, 100})},
                                     {30016, 64, at::Tensor()},
                                     {30096, 9904, at::linspace(-1, 2, 9904, flat)}};
  const AdamBuffers ours = buffers(), reference = buffers(), before = buffers();
  adam_update(ours, gradients, kSomeAdamStep);
  adam_update_reference(reference, gradients, kSomeAdamStep);
  for (const PlacedGradient& placed : gradients) {
    const auto is_close = [&](const at::Tensor& a, const at::Tensor& b) {
      return at::allclose(a.narrow(0, placed.begin, placed.count), b.narrow(0, placed.begin, placed.count), 1e-13, 1e-13);
    };
    EXPECT_TRUE(is_close(ours.values, reference.values));
    EXPECT_TRUE(is_close(ours.first_moment, reference.first_moment));
    EXPECT_TRUE(is_close(ours.average, reference.average));
    EXPECT_FALSE(is_close(ours.first_moment, before.first_moment));
  }
  for (const auto& [first, count] : {std::pair(0, 16), std::pair(30080, 16)})
    EXPECT_TRUE(at::equal(ours.values.narrow(0, first, count), before.values.narrow(0, first, count)));
  EXPECT_NEAR(sum_of_squares(gradients),
              gradients[0].gradient.square().sum().item<double>() + gradients[2].gradient.square().sum().item<double>(), 1e-7);
}

TEST(Optimizer, IsTheSameBitForBitWhateverTheNumberOfThreads) {
  const auto weights_with = [](int threads) {
    at::set_num_threads(threads);
    const at::Tensor parameter = at::linspace(-1, 1, 100003).requires_grad_();
    Optimizer optimizer(FlatParameters(Parameters{{"a", parameter}}), TrainOptions());
    for (int64_t step = 0; step < 3; ++step) {
      parameter.mutable_grad() = gradient_of(parameter, step);
      optimizer.update(0.1, 1);
    }
    return parameter.detach().clone();
  };
  const at::Tensor two = weights_with(2), one = weights_with(1);
  EXPECT_TRUE(at::equal(one, two));
}

TEST(Optimizer, ClipsToTheGlobalNorm) {
  const auto first_moment = [](double clip_norm, double gradient) {
    const Parameters parameters = two_parameters(at::kDouble);
    TrainOptions options = options_with(OptimizerType::kAdam, 0);
    options.clip_norm = clip_norm;
    Optimizer optimizer(FlatParameters{parameters}, options);
    for (const auto& [name, parameter] : parameters) parameter.mutable_grad() = at::full_like(parameter, gradient);
    EXPECT_NEAR(optimizer.update(0.1, 1).gradient_norm, gradient * std::sqrt(26), 1e-12);
    return optimizer.state().at("adam.first_moment.b")[0].item<double>();
  };
  EXPECT_NEAR(first_moment(1, 5), 0.1 / std::sqrt(26), 1e-12);
  EXPECT_NEAR(first_moment(1, 0.01), 0.1 * 0.01, 1e-12);  // short enough: left alone
  EXPECT_NEAR(first_moment(0, 5), 0.1 * 5, 1e-12);        // 0 = never
}

TEST(Optimizer, LeavesOutAnUpdateThatIsNotFinite) {
  const Parameters parameters = two_parameters(at::kFloat);
  Optimizer optimizer(FlatParameters{parameters}, TrainOptions());
  const at::Tensor before = parameters[0].second.detach().clone();
  parameters[1].second.mutable_grad() = at::ones_like(parameters[1].second);
  parameters[1].second.mutable_grad()[2] = NAN;
  EXPECT_FALSE(optimizer.update(0.1, 1).is_finite);
  EXPECT_TRUE(at::equal(parameters[0].second, before));
  EXPECT_EQ(optimizer.num_updates(), 0);
  EXPECT_FALSE(parameters[1].second.grad().defined());
}

TEST(Optimizer, AParameterUnderTwoNamesCountsOnce) {
  const at::Tensor shared = at::ones({4}).requires_grad_();
  const Optimizer optimizer(FlatParameters(Parameters{{"a", shared}, {"b", shared}}), TrainOptions());
  EXPECT_EQ(optimizer.num_parameters(), 4);
}

TEST(Optimizer, MovingAverageFollowsTheWeights) {
  const Parameters parameters = two_parameters(at::kDouble);
  TrainOptions options;
  options.ema_decay = 0.5;
  Optimizer optimizer(FlatParameters{parameters}, options);
  const at::Tensor before = parameters[0].second.detach().clone();
  parameters[0].second.mutable_grad() = at::ones_like(parameters[0].second);
  optimizer.update(0.1, 1);
  const double rate = 0.9;  // 9 / (1 + 9): more than 1 - 0.5
  EXPECT_TRUE(at::allclose(optimizer.ema_weights().at("a"), before + rate * (parameters[0].second - before)));
}

TEST(Optimizer, SwappingTheMovingAverageTwiceChangesNothing) {
  const Parameters parameters = two_parameters(at::kFloat);
  TrainOptions options;
  options.ema_decay = 0.5;
  Optimizer optimizer(FlatParameters{parameters}, options);
  parameters[0].second.mutable_grad() = at::ones_like(parameters[0].second);
  optimizer.update(0.1, 1);
  const at::Tensor weights = parameters[0].second.detach().clone(), average = optimizer.ema_weights().at("a").clone();
  optimizer.swap_ema();
  EXPECT_TRUE(at::equal(parameters[0].second, average));
  optimizer.swap_ema();
  EXPECT_TRUE(at::equal(parameters[0].second, weights));
  EXPECT_TRUE(at::equal(optimizer.ema_weights().at("a"), average));
}

TEST(Optimizer, StateOfAnotherModelIsRefused) {
  Optimizer optimizer(FlatParameters(two_parameters(at::kFloat)), TrainOptions());
  NamedTensors state = optimizer.state();
  state.erase("adam.second_moment.b");
  EXPECT_THROW(optimizer.load_state(state, 1, "runs/x/last"), CheckpointError);
}

}  // namespace
}  // namespace lacuna
