#include "kernels/feed_forward.h"

#include "base/profile.h"
#include "kernels/activation.h"
#include "kernels/layer_products.h"
#include "kernels/residual_norm_rows.h"
#include "kernels/rows_to_keep.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The residual connection and the norm that a function ends in.
class End {
 public:
  /// residual_norm(x weight^T + bias), and keeps `kept` and what the backward pass reads of the norm.
  template <class Stored>
  static variable_list forward(AutogradContext& context, const LayerProducts<Stored>& products, const Tensor& x, const Tensor& weight,
                               const Tensor& bias, const ResidualEnd& end, variable_list kept) {
    const ResidualNormRows rows(end, /*has_output=*/true, /*for_backward=*/true);
    products.multiply_rows(x, weight.t(), bias, [&](const float* output, int64_t first, int64_t last) { rows.take(output, first, last); });
    const variable_list of_norm = rows.kept();
    kept.insert(kept.begin(), of_norm.begin(), of_norm.end());
    context.save_for_backward(kept);
    context.saved_data["is_rms"] = end.norm.is_rms;
    keep_dropout(context, end.dropout, "end");
    context.set_materialize_grads(false);
    return {rows.result().sum, rows.result().normed};
  }

  /// The output's gradient is made a factor of `Stored`.
  template <class Stored>
  static ResidualNormGradients backward(AutogradContext& context, const variable_list& kept, const variable_list& gradients) {
    return residual_norm_gradients({.kept = kept,
                                    .sum_gradient = gradients[0],
                                    .normed_gradient = gradients[1],
                                    .dropout = kept_dropout(context, "end"),
                                    .is_rms = context.saved_data["is_rms"].toBool()},
                                   {.is_rounded = LayerProducts<Stored>::kIsRounded, .wants_sums = true});
  }
};

template <class Stored>
class LinearToResidualFunction : public torch::autograd::Function<LinearToResidualFunction<Stored>> {
  using Products = LayerProducts<Stored>;

 public:
  static variable_list forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& residual,
                               const Tensor& gain, const std::optional<Tensor>& norm_bias, const Dropout& dropout, bool is_rms,
                               FactorPrecision readers, FactorPrecision precision) {
    const Tensor factor = Products::factor(x), weight_factor = Products::factor(weight);
    context->saved_data["x_type"] = x.scalar_type();
    context->saved_data["precision"] = static_cast<int64_t>(precision);
    return End::forward(*context, Products(precision), factor, weight_factor, bias,
                        {residual, dropout, {gain, norm_bias.value_or(Tensor()), is_rms}, readers}, {factor, weight_factor});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kLinear);
    const Products products(static_cast<FactorPrecision>(context->saved_data["precision"].toInt()));
    const variable_list kept = context->get_saved_variables();
    const Tensor &x = kept[ResidualNormRows::kKept], &weight = kept[ResidualNormRows::kKept + 1];
    const ResidualNormGradients of_norm = End::backward<Stored>(*context, kept, gradients);
    Tensor dx, dw;
    if (context->needs_input_grad(0)) dx = products.multiply_into(context->saved_data["x_type"].toScalarType(), of_norm.output, weight);
    if (context->needs_input_grad(1)) dw = products.multiply(of_norm.output.t(), x);
    return {dx, dw, of_norm.output_sums, of_norm.residual, of_norm.gain, of_norm.bias, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

template <class Stored>
class FeedForwardFunction : public torch::autograd::Function<FeedForwardFunction<Stored>> {
  using Rows = BiasedActivationRows<float, Stored>;
  using Products = LayerProducts<Stored>;
  enum Kept : size_t { kInner, kInnerBias, kOuter, kHidden, kBefore, kInput };  // for the backward pass; the last are RowsToKeep

 public:
  static variable_list forward(AutogradContext* context, const Tensor& x, const Tensor& inner_weight, const Tensor& inner_bias,
                               const Tensor& outer_weight, const Tensor& outer_bias, const Tensor& residual, const Tensor& gain,
                               const std::optional<Tensor>& norm_bias, bool is_gelu, const Dropout& dropout, const Dropout& end_dropout,
                               bool is_rms, FactorPrecision readers, FactorPrecision precision, const NormSource* source) {
    const Products products(precision);
    const Tensor input = Products::factor(x), inner = Products::factor(inner_weight), outer = Products::factor(outer_weight);
    const Tensor before = is_gelu ? products.multiply(input, inner.t()) : Tensor();  // (T, D) x (D, F), needed again
    const Tensor hidden = activated(products, input, inner, inner_bias, before, dropout);
    context->saved_data["x_type"] = x.scalar_type();
    context->saved_data["precision"] = static_cast<int64_t>(precision);
    keep_dropout(*context, dropout);
    variable_list kept = {inner, inner_bias, outer, hidden, before};
    const variable_list of_input = RowsToKeep::of(*context, input, source);
    kept.insert(kept.end(), of_input.begin(), of_input.end());
    return End::forward(*context, products, hidden, outer, outer_bias,
                        {residual, end_dropout, {gain, norm_bias.value_or(Tensor()), is_rms}, readers}, kept);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kLinear);
    const Products products(static_cast<FactorPrecision>(context->saved_data["precision"].toInt()));
    const variable_list all = context->get_saved_variables(), kept(all.begin() + ResidualNormRows::kKept, all.end());
    const ResidualNormGradients of_norm = End::backward<Stored>(*context, all, gradients);
    const Tensor& gradient = of_norm.output;
    const auto [inner_gradient, inner_bias_gradient] = through_activation(products, gradient, kept, kept_dropout(*context));
    Tensor dx, d_inner, d_outer;
    if (context->needs_input_grad(0))
      dx = products.multiply_into(context->saved_data["x_type"].toScalarType(), inner_gradient, kept[kInner]);
    if (context->needs_input_grad(1)) d_inner = products.multiply(inner_gradient.t(), RowsToKeep::rows(*context, kept, kInput));
    if (context->needs_input_grad(3)) d_outer = products.multiply(gradient.t(), kept[kHidden]);
    variable_list all_gradients = {dx,           d_inner,     inner_bias_gradient, d_outer, of_norm.output_sums, of_norm.residual,
                                   of_norm.gain, of_norm.bias};
    all_gradients.resize(15);  // the other arguments have none
    return all_gradients;
  }

 private:
  static BiasedActivation<float, Stored> activation() {
    if constexpr (Products::kIsRounded) {
      return row_kernels<float>().rounded_activation;
    } else {
      return row_kernels<float>().biased_activation;
    }
  }

  /// dropout(f(x inner^T + bias)) [T, F]. gelu's products are made already.
  static Tensor activated(const Products& products, const Tensor& x, const Tensor& inner, const Tensor& bias, const Tensor& before,
                          const Dropout& dropout) {
    Tensor result = Products::empty({x.size(0), inner.size(0)});
    const Rows args = {.columns = inner.size(0),
                       .is_gelu = before.defined(),
                       .dropout = dropout.rows(),
                       .first_row = 0,
                       .input = data_of<float>(before),
                       .bias = data_of<float>(bias),
                       .result = Products::data(result),
                       .gradient = nullptr,
                       .input_gradient = nullptr,
                       .bias_sums = nullptr};
    const auto activate = activation().forward;
    if (before.defined()) {
      const TimedPart timed(ProfilePart::kActivation);
      for_rows(activate, args, x.size(0));
      return result;
    }
    products.multiply_rows(x, inner.t(), {}, [&](float* rows, int64_t begin, int64_t end) {
      Rows of_block = args;
      of_block.first_row = begin;
      of_block.input = rows;
      activate(of_block, begin, end);
    });
    return result;
  }

  /// The gradient of the inner products [T, F], and its column sums, from that of the result.
  static RoundedWithSums through_activation(const Products& products, const Tensor& gradient, const variable_list& kept,
                                            const Dropout& dropout) {
    const Tensor &bias = kept[kInnerBias], &outer = kept[kOuter], &hidden = kept[kHidden], &before = kept[kBefore];
    const Tensor result = at::empty_like(hidden);
    const Tensor sums = at::empty({sum_blocks(hidden.size(0)), hidden.size(1)}, at::kFloat);
    const Rows args = {.columns = hidden.size(1),
                       .is_gelu = before.defined(),
                       .dropout = dropout.rows(),
                       .first_row = 0,
                       .input = data_of<float>(before),
                       .bias = data_of<float>(bias),
                       .result = Products::data(hidden),
                       .gradient = nullptr,
                       .input_gradient = Products::data(result),
                       .bias_sums = mutable_data_of<float>(sums)};
    products.multiply_rows(gradient, outer, {}, [&](float* rows, int64_t begin, int64_t end) {  // (T, D) x (D, F)
      Rows of_block = args;
      of_block.first_row = begin;
      of_block.gradient = rows;
      activation().backward(of_block, begin, end);
    });
    return {result, sums.sum(0)};
  }
};

bool has_row_blocks(const ResidualEnd& end) {
  return end.residual.is_cpu() && end.residual.scalar_type() == at::kFloat;
}

/// Calls f with a number of what the products' factors are stored in.
template <class F>
ResidualNorm with_stored(FactorPrecision precision, const F& f) {
  const TimedPart timed(ProfilePart::kLinear);
  const auto named = [](const variable_list& results) { return ResidualNorm{results[0], results[1]}; };
  if (precision == FactorPrecision::kBf16) return named(f(uint16_t()));
  return named(f(float()));
}

}  // namespace

ResidualNorm linear_to_residual(const Tensor& x, const LinearWeights& weights, const ResidualEnd& end, FactorPrecision precision) {
  if (!has_row_blocks(end)) return residual_norm(end, linear(x, weights.weight, weights.bias, precision));
  return with_stored(precision, [&](auto stored) {
    return LinearToResidualFunction<decltype(stored)>::apply(x.contiguous(), weights.weight, weights.bias, end.residual.contiguous(),
                                                             end.norm.gain, optional_of(end.norm.bias), end.dropout, end.norm.is_rms,
                                                             end.readers, precision);
  });
}

ResidualNorm feed_forward(const Tensor& x, const LinearWeights& inner, const LinearWeights& outer, bool is_gelu, const Dropout& dropout,
                          const ResidualEnd& end, FactorPrecision precision, const NormSource* source) {
  if (!has_row_blocks(end)) {
    const Tensor hidden = activation_dropout(linear(x, inner.weight, inner.bias, precision, /*is_rounded=*/false, source), is_gelu,
                                             dropout);  // (T, D) -> (T, F)
    return linear_to_residual(hidden, outer, end, precision);
  }
  return with_stored(precision, [&](auto stored) {
    return FeedForwardFunction<decltype(stored)>::apply(x.contiguous(), inner.weight, inner.bias, outer.weight, outer.bias,
                                                        end.residual.contiguous(), end.norm.gain, optional_of(end.norm.bias), is_gelu,
                                                        dropout, end.dropout, end.norm.is_rms, end.readers, precision, source);
  });
}

}  // namespace lacuna
