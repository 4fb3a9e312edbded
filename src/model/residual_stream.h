#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/forward_context.h"
#include "base/ragged.h"
#include "model/dropout_site.h"
#include "model/norm.h"

namespace lacuna {

/// Computes the output [T, D] of a sub-layer once its destination is known, so that its last product, the sum with the residual and the
/// next norm are one pass over memory. It may refer to the sub-layer, its input and the context, so these must still live when it is
/// called.
using SubLayerOutput = std::function<ResidualNorm(const ResidualEnd& end)>;

/// The residual stream [T, D] on its way through a stack of sub-layers. With norms n and sub-layers f:
///
///   post-norm  x <- n(x + dropout(f(x)))                     (Vaswani et al. 2017)
///   pre-norm   x <- x + dropout(f(n(x))), and n once at the end
///
/// `norms` are those of the stack in the order of use: one for each sub-layer, and for pre-norm the last one.
class ResidualStream {
 public:
  ResidualStream(NormPlace place, std::vector<std::shared_ptr<Norm>> norms, Ragged embedded, double dropout, const ForwardContext& context);

  /// What the next sub-layer reads; in the end the stack's result.
  const Ragged& values() const { return normed_; }
  /// Adds the sub-layer's output to the stream, with dropout, and applies the next norm.
  void add(const SubLayerOutput& output, const DropoutSite& site);

 private:
  /// The sum with the residual, through the next norm. Its readers have the context's precision if all of them are linear layers.
  ResidualEnd next_end(const Dropout& dropout);
  /// Makes its normed rows the values.
  void take(const ResidualNorm& result, const NormWeights& norm);

  NormPlace place_;
  std::vector<std::shared_ptr<Norm>> norms_;
  size_t next_ = 0;
  double dropout_;
  const ForwardContext& context_;
  Tensor sum_;
  Ragged normed_;
};

}  // namespace lacuna
