#pragma once

#include <torch/nn/module.h>

#include "config/options.h"
#include "kernels/residual_norm.h"

namespace lacuna {

/// The learned part of a LayerNorm (gain, bias) or RMSNorm (gain) over rows of D features. Gains start at 1, biases at 0.
class Norm : public torch::nn::Module {
 public:
  Norm(NormType type, int64_t d_model);
  NormWeights weights() const { return {gain_, bias_, type_ == NormType::kRms}; }

 private:
  NormType type_;
  Tensor gain_, bias_;
};

}  // namespace lacuna
