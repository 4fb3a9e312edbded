#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "model/ragged_of.h"
#include "model/transformer.h"

namespace lacuna {

inline constexpr int64_t kSmallVocabulary = 23;
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

}  // namespace lacuna
