#pragma once

#include "attention/norms/norm.h"
#include "attention/norms/rms_function.h"
#include "config/describe.h"

/// RMSNorm (Zhang & Sennrich 2019, arXiv:1910.07467) as rectified linear attention uses it (arXiv:2104.07012, ReLA-i):
///
///   g ⊙ c / sqrt(mean(c²) + 1e-8)      with the gain g drawn from ±sqrt(3 / D)
namespace lacuna::norms::rms {

inline constexpr double kEpsilon = 1e-8;

enum class GainInit { kXavierUniform, kOnes };

struct Options {
  GainInit gain_init = GainInit::kXavierUniform;

  template <class Self, class Visitor>
  static void describe(Self& self, Visitor&& visit) {
    visit("gain_init", self.gain_init, choices<GainInit>({{"xavier_uniform", GainInit::kXavierUniform}, {"ones", GainInit::kOnes}}),
          "the gain at the start: drawn from ±sqrt(3 / d_model), or 1");
  }
};

class Norm : public AttentionNorm {
 public:
  Norm(const Options& options, int64_t d_model, uint64_t key)
      : gain_(register_parameter(
            "gain", options.gain_init == GainInit::kOnes ? at::ones({d_model}, at::kFloat) : xavier_uniform_vector(d_model, key))) {}
  Tensor forward(const Tensor& context) override { return gated_rms_norm(context, gain_, {}, kEpsilon); }

 private:
  Tensor gain_;  // [D]
};

}  // namespace lacuna::norms::rms
