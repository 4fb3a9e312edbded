#pragma once

#include "attention/norms/norm.h"
#include "config/describe.h"

namespace lacuna::norms {

/// Returns, row by row, gain ⊙ c / sqrt(mean(c²) + epsilon), times sigmoid(gate ⊙ c) if a gate is given. context [T, D]
/// and the result are of one type: that of the gain, or bf16 with a gain of float. gain and gate [D], gate may be
/// undefined. On the CPU one pass over memory forward and one backward; on a GPU one kernel and two. Double on a GPU
/// and bf16 with a gain of double are left to ATen, which gives a result of the gain's type. A row's bits depend on
/// that row alone; gradients of gain and gate do not depend on the number of threads.
Tensor gated_rms_norm(const Tensor& context, const Tensor& gain, const Tensor& gate, double epsilon);

/// Writes that of context [rows, D] to `to`, on the CPU without gradients; returns `to`.
const float* gated_rms_norm(const float* context, int64_t rows, const Tensor& gain, const Tensor& gate, double epsilon, float* to);
/// Returns true for parameters of float on the CPU.
inline bool are_rows_taken(const Tensor& gain) {
  return gain.is_cpu() && gain.scalar_type() == at::kFloat;
}

/// Returns a vector [size] drawn uniformly from ±sqrt(3 / size): Xavier's initialization.
Tensor xavier_uniform_vector(int64_t size, uint64_t key);

}  // namespace lacuna::norms

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
  bool takes_rows() const override { return are_rows_taken(gain_); }
  const float* of_rows(const float* context, int64_t rows, float* to) const override {
    return gated_rms_norm(context, rows, gain_, {}, kEpsilon, to);
  }

 private:
  Tensor gain_;  // [D]
};

}  // namespace lacuna::norms::rms
