#pragma once

#include <torch/nn/module.h>

#include <memory>

#include "base/ragged.h"
#include "config/options.h"
#include "kernels/residual_norm.h"

namespace lacuna {

/// The learned part of a LayerNorm (gain, bias) or RMSNorm (gain) over rows of D features. Gains start at 1, biases at
/// 0.
class Norm : public torch::nn::Module {
 public:
  explicit Norm(const ModelOptions& options)
      : type_(options.norm_type),
        epsilon_(options.norm_epsilon),
        gain_(register_parameter("gain", at::ones({options.d_model}, at::kFloat))) {
    if (type_ == NormType::kLayer) bias_ = register_parameter("bias", at::zeros({options.d_model}, at::kFloat));
  }
  NormWeights weights() const { return {gain_, bias_, type_ == NormType::kRms, epsilon_}; }

 private:
  NormType type_;
  double epsilon_;  // 0 = the type's
  Tensor gain_, bias_;
};

/// Rows that a norm computed. A linear layer that reads them keeps `source`, which is kept anyway, for its backward
/// pass, and computes the rows again there.
struct NormedRows : Ragged {
  std::shared_ptr<const NormSource> source = nullptr;  ///< null = the rows must be kept
};

}  // namespace lacuna
