#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "config/config_node.h"
#include "config/option_help.h"

namespace lacuna {

using at::Tensor;

/// A norm over the concatenated heads. Each has a file in norms/ and is listed in attention/CMakeLists.txt.
class AttentionNorm : public torch::nn::Module {
 public:
  /// Normalizes context [T, D] row by row and returns [T, D]. The context may be bf16, whatever the parameters are.
  virtual Tensor forward(const Tensor& context) = 0;
  /// Returns true if `of_rows` may be called: parameters of float on the CPU.
  virtual bool takes_rows() const { return false; }
  /// Returns where the normed rows of context [rows, D] are, without gradients: at `to`, or where the context is.
  virtual const float* of_rows(const float* context, int64_t /*rows*/, float* /*to*/) const { return context; }
};

/// Returns the norm with this name. `options` is its map without `type`, or null. Parameters are initialized from `key`
/// alone. Throws ConfigError for an unknown name or option.
std::shared_ptr<AttentionNorm> make_attention_norm(const std::string& name, const ConfigNode& options, int64_t d_model, uint64_t key);

/// Throws ConfigError unless `node`, a name or a map with `type`, names a norm with options that it has.
void check_attention_norm(const ConfigNode& node);

namespace norms {

struct NormEntry {
  const char* name;
  std::shared_ptr<AttentionNorm> (*make)(const ConfigNode& options, int64_t d_model, uint64_t key);
  std::vector<OptionHelp> (*help)();
};

std::span<const NormEntry* const> all_norms();

}  // namespace norms
}  // namespace lacuna
