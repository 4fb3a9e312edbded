#pragma once

#include "attention/norms/rms.h"

/// Gated RMSNorm (rectified linear attention, arXiv:2104.07012, ReLA-g):
///
///   rms(c) ⊙ sigmoid(w ⊙ c)      with gain 1 and w a learned vector, drawn from ±sqrt(3 / D)
namespace lacuna::norms::gated_rms {

struct Options {};

class Norm : public AttentionNorm {
 public:
  Norm(const Options& /*options*/, int64_t d_model, uint64_t key)
      : gain_(register_parameter("gain", at::ones({d_model}, at::kFloat))),
        gate_(register_parameter("gate", xavier_uniform_vector(d_model, key))) {}
  Tensor forward(const Tensor& context) override { return gated_rms_norm(context, gain_, gate_, rms::kEpsilon); }
  bool takes_rows() const override { return are_rows_taken(gain_); }
  const float* of_rows(const float* context, int64_t rows, float* to) const override {
    return gated_rms_norm(context, rows, gain_, gate_, rms::kEpsilon, to);
  }

 private:
  Tensor gain_, gate_;  // [D]
};

}  // namespace lacuna::norms::gated_rms
