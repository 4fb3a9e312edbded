#pragma once

#include <memory>

#include "config/options.h"
#include "model/dropout_site.h"
#include "model/linear.h"
#include "model/step_rows.h"

namespace lacuna {

/// The feed-forward sub-layer outer(dropout(activation(inner(x)))) (Vaswani et al. 2017, section 3.3). With swiglu, inner
/// makes a gate and a value of d_ff features each: inner.weight [2F, D], gate first.
class FeedForward : public torch::nn::Module {
 public:
  FeedForward(const ModelOptions& options, int64_t d_ff, DropoutSite site, const ParameterPath& path);
  /// x (T, D) -> (T, D), added to the residual stream at `end`.
  ResidualNorm forward(const NormedRows& x, const ResidualEnd& end, const ForwardContext& context);
  /// Writes the layer's output for x [N, D], without gradients, to rows.output.
  void step(const float* x, StepRows& rows) const;
  /// Returns memory for steps through this layer and attention.
  std::unique_ptr<StepRows> step_rows() const { return std::make_unique<StepRows>(inner_->inputs(), inner_->outputs()); }

 private:
  ResidualNorm gated(const NormedRows& x, const ResidualEnd& end, const ForwardContext& context);

  Activation activation_;
  double dropout_;
  DropoutSite site_;
  std::shared_ptr<Linear> inner_, outer_;
};

}  // namespace lacuna
