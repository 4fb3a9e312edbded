#pragma once

#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "attention/probe.h"
#include "base/ragged.h"
#include "model/transformer.h"

namespace lacuna {

inline constexpr int64_t kSmallVocabulary = 23;
inline constexpr int32_t kSmallBos = 1;
using Sentences = std::vector<std::vector<int32_t>>;

inline ModelOptions small_options(NormPlace norm = NormPlace::kPre) {
  ModelOptions options;
  options.d_model = 16;
  options.num_heads = 2;
  options.d_ff = 24;
  options.encoder_layers = options.decoder_layers = 2;
  options.norm = norm;
  options.dropout = 0;
  return options;
}

inline std::shared_ptr<Transformer> small_model(const ModelOptions& options, uint64_t seed = 1) {
  return std::make_shared<Transformer>(options, VocabularySizes{kSmallVocabulary, kSmallVocabulary, true}, seed);
}

inline Sentences some_sources() {
  return {{5, 9, 14, 2}, {7, 2}, {20, 3, 3, 8, 11, 6, 2}};
}
inline Sentences some_targets() {
  return {{6, 4, 2}, {10, 11, 12, 13, 2}, {2}};
}
inline Sentences some_to_copy() {
  return {{4, 5, 6, 2}, {7, 8, 2}, {9, 10, 11, 12, 2}};
}

/// The gradient of every parameter by name (zero where there is none), and then none are left.
inline std::map<std::string, Tensor> take_gradients(Transformer& model) {
  std::map<std::string, Tensor> gradients;
  for (auto& item : model.named_parameters()) {
    Tensor& parameter = item.value();
    gradients[item.key()] = parameter.grad().defined() ? parameter.grad().clone() : at::zeros_like(parameter);
    parameter.mutable_grad() = Tensor();
  }
  return gradients;
}

/// max |a - b| / (1 + max |b|)
inline double difference(const Tensor& a, const Tensor& b) {
  return (a - b).abs().max().item<double>() / (1 + b.abs().max().item<double>());
}

/// Compares the gradient of `loss` with central differences, at up to 8 elements of each such parameter. Makes the model one of double.
template <class IsChecked, class Loss>
void expect_gradients_of_finite_differences(Transformer& model, IsChecked is_checked, Loss loss, double tolerance) {
  constexpr double kStep = 1e-5;
  model.to(at::kDouble);
  loss().backward();
  const auto gradients = take_gradients(model);
  for (auto& item : model.named_parameters()) {
    if (!is_checked(item.key())) continue;
    const Tensor values = item.value().detach().view({-1}), gradient = gradients.at(item.key()).view({-1});
    for (int64_t i = 0; i < values.size(0); i += 1 + (values.size(0) - 1) / 8) {
      const auto moved = [&](double by) {
        values[i].add_(by);
        return loss().template item<double>();
      };
      const double up = moved(kStep), down = moved(-2 * kStep);
      moved(kStep);
      EXPECT_NEAR(gradient[i].item<double>(), (up - down) / (2 * kStep), tolerance) << item.key() << ", element " << i;
    }
  }
}

/// 60 updates as the trainer makes them, each on the gradients that `backward` leaves.
template <class Backward>
void train(Transformer& model, Backward backward) {
  torch::optim::Adam optimizer(model.parameters(), torch::optim::AdamOptions(5e-3));
  for (int i = 0; i < 60; ++i) {
    optimizer.zero_grad();
    backward();
    optimizer.step();
    const at::NoGradGuard guard;
    auto parameters = model.named_parameters();
    for (const ParameterRange& range : model.parameter_ranges()) parameters[range.name].clamp_(range.lowest, range.highest);
  }
}

/// Keeps the learned numbers it sees.
class NumbersProbe : public AttentionProbe {
 public:
  void see(int, AttentionSite, int, int64_t, int64_t, std::span<const float>, std::span<const int32_t>) override {}
  void see_number(int layer, AttentionSite site, const std::string& name, std::span<const double> values) override {
    seen[std::string(name_of(site)) + " " + std::to_string(layer) + " " + name] = {values.begin(), values.end()};
  }
  std::map<std::string, std::vector<double>> seen;
};

}  // namespace lacuna
