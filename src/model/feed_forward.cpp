#include "model/feed_forward.h"

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
  }
  return ProductEnd::kRelu;
}

}  // namespace

FeedForward::FeedForward(const ModelOptions& options, int64_t d_ff, DropoutSite site, const ParameterPath& path)
    : activation_(options.activation),
      dropout_(options.activation_dropout),
      site_(site),
      inner_(register_module("inner", std::make_shared<Linear>(options.d_model, d_ff, path / "inner"))),
      outer_(register_module("outer", std::make_shared<Linear>(d_ff, options.d_model, path / "outer"))) {}

ResidualNorm FeedForward::forward(const NormedRows& x, const ResidualEnd& end, const ForwardContext& context) {
  if (!at::GradMode::is_enabled() && !context.training) {
    const Tensor active = inner_->without_gradients(x.values, end_of(activation_));
    const RowZeros zeros = activation_ == Activation::kRelu ? RowZeros::kMany : RowZeros::kFew;
    return residual_norm(end, outer_->without_gradients(active, ProductEnd::kNone, zeros));
  }
  const Dropout dropout = site_.dropout(dropout_, x.shape, context);
  if (at::GradMode::is_enabled())
    return feed_forward(x.values, {inner_->weights_to_train(), outer_->weights_to_train(), activation_, dropout}, end, context.precision,
                        x.source.get());
  return outer_->forward(activation_dropout(inner_->forward(x, context), activation_, dropout), end, context);
}

}  // namespace lacuna
