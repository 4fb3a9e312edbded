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
  /// context [T, D] -> [T, D], row by row. The context may be bf16, whatever the type of the parameters.
  virtual Tensor forward(const Tensor& context) = 0;
};

/// `options` is the norm's map without `type`, or null. Parameters are initialised from `key` alone. Throws ConfigError for an unknown name
/// or option.
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

/// A vector [size] drawn uniformly from ±sqrt(3 / size): Xavier's initialisation.
Tensor xavier_uniform_vector(int64_t size, uint64_t key);

}  // namespace norms
}  // namespace lacuna
