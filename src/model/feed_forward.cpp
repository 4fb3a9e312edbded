#include "model/feed_forward.h"

#include "kernels/gated_activation.h"
#include "kernels/layers.h"

namespace lacuna {
namespace {

ProductEnd end_of(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      break;
    case Activation::kGelu:
      return ProductEnd::kGelu;
    case Activation::kSwish:
      return ProductEnd::kSwish;
    case Activation::kSwiglu:
      return ProductEnd::kNone;
  }
  return ProductEnd::kRelu;
}

RowZeros zeros_after(Activation activation) {
  return activation == Activation::kRelu ? RowZeros::kMany : RowZeros::kFew;
}

/// Returns the number of products of d_ff features that the inner matrix makes.
int64_t inner_blocks(Activation activation) {
  return activation == Activation::kSwiglu ? 2 : 1;
}

}  // namespace

FeedForward::FeedForward(const ModelOptions& options, int64_t d_ff, DropoutSite site, const ParameterPath& path)
    : activation_(options.activation),
      dropout_(options.activation_dropout),
      site_(site),
      inner_(register_module("inner", std::make_shared<Linear>(options.d_model, inner_blocks(activation_) * d_ff, path / "inner",
                                                               LinearOptions{.blocks = inner_blocks(activation_)}))),
      outer_(register_module("outer", std::make_shared<Linear>(d_ff, options.d_model, path / "outer"))) {}

void FeedForward::step(const float* x, StepRows& rows) const {
  if (activation_ == Activation::kSwiglu) {
    inner_->without_gradients(x, rows.count, rows.wide);
    swiglu(rows.wide, rows.count, outer_->inputs(), rows.narrow);
    outer_->without_gradients(rows.narrow, rows.count, rows.output);
  } else {
    inner_->without_gradients(x, rows.count, rows.wide, end_of(activation_));
    outer_->without_gradients(rows.wide, rows.count, rows.output, ProductEnd::kNone, zeros_after(activation_));
  }
}

ResidualNorm FeedForward::gated(const NormedRows& x, const ResidualEnd& end, const ForwardContext& context) {
  const Tensor active = swiglu_dropout(inner_->forward(x, context), site_.dropout(dropout_, x.shape, context));  // (T, 2F) -> (T, F)
  return outer_->forward(active, end, context);
}

ResidualNorm FeedForward::forward(const NormedRows& x, const ResidualEnd& end, const ForwardContext& context) {
  if (activation_ == Activation::kSwiglu) return gated(x, end, context);
  if (!at::GradMode::is_enabled() && !context.training) {
    const Tensor active = inner_->without_gradients(x.values, end_of(activation_), RowZeros::kFew, /*is_rounded=*/true);
    return residual_norm(end, outer_->without_gradients(active, ProductEnd::kNone, zeros_after(activation_), /*is_rounded=*/true));
  }
  const Dropout dropout = site_.dropout(dropout_, x.shape, context);
  if (at::GradMode::is_enabled())
    return feed_forward(x.values, {inner_->weights_to_train(), outer_->weights_to_train(), activation_, dropout}, end, context.precision,
                        x.source.get());
  return outer_->forward(activation_dropout(inner_->forward(x, context), activation_, dropout), end, context);
}

}  // namespace lacuna
