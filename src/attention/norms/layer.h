#pragma once

#include "attention/norms/norm.h"

/// LayerNorm (Ba et al. 2016, arXiv:1607.06450) over the concatenated heads: an ablation.
namespace lacuna::norms::layer {

struct Options {};

class Norm : public AttentionNorm {
 public:
  Norm(const Options& /*options*/, int64_t d_model, uint64_t /*key*/)
      : gain_(register_parameter("gain", at::ones({d_model}, at::kFloat))),
        bias_(register_parameter("bias", at::zeros({d_model}, at::kFloat))) {}
  Tensor forward(const Tensor& context) override { return at::layer_norm(context.to(gain_.scalar_type()), {gain_.size(0)}, gain_, bias_); }

 private:
  Tensor gain_, bias_;  // [D]
};

}  // namespace lacuna::norms::layer
