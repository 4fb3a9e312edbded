#pragma once

#include <memory>
#include <vector>

#include "base/forward_context.h"
#include "base/ragged.h"
#include "model/dropout_site.h"
#include "model/norm.h"

namespace lacuna {

/// The residual stream [T, D] on its way through a stack of sub-layers. With norms n and sub-layers f:
///
///   post-norm  x <- n(x + dropout(f(x)))                     (Vaswani et al. 2017)
///   pre-norm   x <- x + dropout(f(n(x))), and n once at the end
///
/// Either way each sum and the norm that comes next are one pass over memory. `norms` are those of the stack in the order of use: one for
/// each sub-layer, and for pre-norm the last one.
class ResidualStream {
 public:
  ResidualStream(NormPlace place, std::vector<std::shared_ptr<Norm>> norms, Ragged embedded, double dropout, const ForwardContext& context);

  /// What the next sub-layer reads; in the end the stack's result.
  const Ragged& values() const { return normed_; }
  /// Takes the sub-layer's output in.
  void add(const Tensor& output, const DropoutSite& site);

 private:
  const NormWeights next_norm() { return norms_[next_++]->weights(); }

  NormPlace place_;
  std::vector<std::shared_ptr<Norm>> norms_;
  size_t next_ = 0;
  double dropout_;
  const ForwardContext& context_;
  Tensor sum_;
  Ragged normed_;
};

}  // namespace lacuna
