#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "attention/forward_context.h"
#include "model/dropout_site.h"
#include "model/norm.h"
#include "model/step_rows.h"

namespace lacuna {

/// The residual stream [T, D] on its way through a stack of sub-layers. With norms n and sub-layers f:
///
///   post-norm  x <- n(x + dropout(f(x)))                     (Vaswani et al. 2017)
///   pre-norm   x <- x + dropout(f(n(x))), and n once at the end
///
/// A sub-layer is told where its output goes before it runs, so that its last product, the sum with the residual and
/// the next norm are one pass over memory:
///
///   stream.take(layer.forward(stream.values(), stream.next_end(site), context));
///
/// `norms` are those of the stack in the order of use: one for each sub-layer, and for pre-norm the last one.
class ResidualStream {
 public:
  ResidualStream(NormPlace place, std::vector<std::shared_ptr<Norm>> norms, Ragged embedded, double dropout, const ForwardContext& context);

  /// Returns what the next sub-layer reads; in the end, the stack's result.
  const NormedRows& values() const { return normed_; }
  /// Returns what the next sub-layer's output is added to, with dropout by this site, and the norm that comes then.
  ResidualEnd next_end(const DropoutSite& site) {
    site_ = site;
    return next_end(site.dropout(dropout_, normed_.shape, context_));
  }
  /// Continues with the sum and the normed rows that the sub-layer computed for its end.
  void take(const ResidualNorm& result);

 private:
  ResidualEnd next_end(const Dropout& dropout);
  void show(const ResidualNorm& result) const;
  bool is_pre_norm() const { return place_ == NormPlace::kPre; }
  bool is_at_end() const { return next_ == norms_.size(); }

  NormPlace place_;
  std::vector<std::shared_ptr<Norm>> norms_;
  size_t next_ = 0;  // the next norm
  std::optional<DropoutSite> site_;
  double dropout_;
  const ForwardContext& context_;
  Tensor sum_;
  NormedRows normed_;
};

/// The residual stream of a decoding step: on rows in plain memory, without gradients and dropout. rows.residual are the
/// embedded tokens at first.
///
///   layer.step(stream.values(), rows);
///   stream.take();
class ResidualRows {
 public:
  ResidualRows(NormPlace place, const std::vector<std::shared_ptr<Norm>>& norms, StepRows& rows)
      : is_pre_norm_(place == NormPlace::kPre), norms_(norms), rows_(rows) {
    if (is_pre_norm_) next_norm(nullptr);
  }

  /// Returns what the next sub-layer reads; in the end, the stack's result.
  const float* values() const { return is_pre_norm_ ? rows_.normed : rows_.residual; }
  /// Continues with what the sub-layer wrote to rows.output.
  void take() {
    next_norm(rows_.output);
    std::swap(rows_.residual, is_pre_norm_ ? rows_.sum : rows_.normed);
  }

 private:
  void next_norm(const float* output) {
    residual_norm(norms_[next_++]->weights(), rows_.count, rows_.residual, output, rows_.sum, rows_.normed);
  }

  const bool is_pre_norm_;
  const std::vector<std::shared_ptr<Norm>>& norms_;
  StepRows& rows_;
  size_t next_ = 0;  // the next norm
};

}  // namespace lacuna
