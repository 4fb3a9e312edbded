#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "config/config_node.h"

namespace lacuna {

using at::Tensor;

/// A norm over the concatenated heads. One file each in norms/; listed in CMakeLists.txt.
class AttentionNorm : public torch::nn::Module {
 public:
  /// context [T, D] -> [T, D], each row on its own. It may be bf16, whatever the parameters are.
  virtual Tensor forward(const Tensor& context) = 0;
};

/// `options` is the norm's map without `type`, or null. Parameters are drawn from `key` alone. Throws ConfigError for what is unknown.
std::shared_ptr<AttentionNorm> make_attention_norm(const std::string& name, const ConfigNode& options, int64_t d_model, uint64_t key);

/// Throws ConfigError unless `node`, a name or a map with `type`, names a norm with options that it has.
void check_attention_norm(const ConfigNode& node);

namespace norms {

struct NormEntry {
  const char* name;
  std::shared_ptr<AttentionNorm> (*make)(const ConfigNode& options, int64_t d_model, uint64_t key);
  std::string (*help)();  ///< its options as lines of --help-options
};

std::span<const NormEntry* const> all_norms();

/// [size] drawn evenly from ±sqrt(3 / size): Xavier's uniform initialisation of a vector.
Tensor xavier_uniform_vector(int64_t size, uint64_t key);

}  // namespace norms
}  // namespace lacuna
