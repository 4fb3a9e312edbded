#include "kernels/layers.h"

#include "kernels/layer_products.h"
#include "kernels/profile.h"
#include "kernels/reference.h"
#include "kernels/residual_norm_rows.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class Stored>
class LinearFunction : public torch::autograd::Function<LinearFunction<Stored>> {
  using Products = LayerProducts<Stored>;

 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                        Precision precision, at::ScalarType result, const NormSource* source) {
    const Tensor factor = Products::factor(x), weight_factor = Products::factor(weight);
    variable_list kept = RowsToKeep::of(*context, factor, source);
    kept.push_back(weight_factor);
    context->save_for_backward(kept);
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["x_type"] = x.scalar_type();
    context->saved_data["precision"] = static_cast<int64_t>(precision);
    return Products(precision).multiply_into(result, factor, weight_factor.t(), bias.value_or(Tensor()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kLinear);
    const Products products(static_cast<Precision>(context->saved_data["precision"].toInt()));
    const variable_list kept = context->get_saved_variables();
    const bool wants_sums = context->saved_data["has_bias"].toBool() && context->needs_input_grad(2);
    const auto [gradient, sums] = Products::factor_with_sums(gradients[0].contiguous(), wants_sums);
    Tensor dx, dw;
    if (context->needs_input_grad(0))
      dx = products.multiply_into(context->saved_data["x_type"].toScalarType(), gradient, kept[RowsToKeep::kSize]);
    if (context->needs_input_grad(1)) dw = products.multiply(gradient.t(), RowsToKeep::rows(*context, kept, 0));
    return {dx, dw, sums, Tensor(), Tensor(), Tensor()};
  }
};

Tensor activation_forward(const Tensor& x, Activation activation, const Dropout& dropout) {
  Tensor result = at::empty_like(x);
  with_scalar_of(x, [&](auto t) {
    using T = decltype(t);
    const ActivationRows<T> args = {x.size(1), activation, dropout.rows(x.device()), data_of<T>(x), nullptr, mutable_data_of<T>(result),
                                    nullptr};
    if constexpr (std::is_same_v<T, float>) {
      const auto start = [&](const gpu::Kernels& kernels, void* stream) { return kernels.activation_forward(args, x.size(0), stream); };
      if (has_gpu_rows(x)) return with_gpu_kernels(x, start);
    }
    for_rows(row_kernels<T>().activation_forward, args, x.size(0));
  });
  return result;
}

class ActivationFunction : public torch::autograd::Function<ActivationFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, Activation activation, const Dropout& dropout) {
    Tensor result = activation_forward(x, activation, dropout);
    context->save_for_backward({activation == Activation::kRelu ? result : x});
    context->saved_data["activation"] = static_cast<int64_t>(activation);
    keep_dropout(*context, dropout);
    return result;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kActivation);
    const Tensor kept = context->get_saved_variables()[0], gradient = gradients[0].contiguous(), to = at::empty_like(kept);
    const auto activation = static_cast<Activation>(context->saved_data["activation"].toInt());
    const Dropout dropout = kept_dropout(*context);
    with_scalar_of(kept, [&](auto t) {
      using T = decltype(t);
      const ActivationRows<T> args = {kept.size(1),
                                      activation,
                                      dropout.rows(kept.device()),
                                      data_of<T>(kept),
                                      data_of<T>(gradient),
                                      const_cast<T*>(data_of<T>(kept)),  // read only
                                      mutable_data_of<T>(to)};
      if constexpr (std::is_same_v<T, float>) {
        const auto start = [&](const gpu::Kernels& kernels, void* stream) {
          return kernels.activation_backward(gpu::ActivationGradientRows<float>{args, nullptr}, kept.size(0), stream);
        };
        if (has_gpu_rows(kept)) return with_gpu_kernels(kept, start);
      }
      for_rows(row_kernels<T>().activation_backward, args, kept.size(0));
    });
    return {to, Tensor(), Tensor()};
  }
};

/// A ResidualEnd without the tensors that have gradients: autograd functions take these one by one.
struct EndSettings {
  Dropout dropout;
  bool is_rms;
  double epsilon;
  Precision readers;

  explicit EndSettings(const ResidualEnd& end)
      : dropout(end.dropout), is_rms(end.norm.is_rms), epsilon(end.norm.given_epsilon), readers(end.readers) {}
  ResidualEnd with(const Tensor& residual, const Tensor& gain, const std::optional<Tensor>& bias) const {
    return {residual, dropout, {gain, bias.value_or(Tensor()), is_rms, epsilon}, readers};
  }
};

/// The residual connection and the norm that a function ends in.
class End {
 public:
  /// residual_norm(x weight^T + bias), and keeps `kept` and what the backward pass reads of the norm.
  template <class Stored>
  static variable_list forward(AutogradContext& context, const LayerProducts<Stored>& products, const Tensor& x, const Tensor& weight,
                               const Tensor& bias, const ResidualEnd& end, variable_list kept) {
    const ResidualNormRows rows(end, /*has_output=*/true, /*for_backward=*/true);
    if (is_on_gpu(x)) {
      rows.take_on_gpu(products.multiply_into(products.kType, x, weight.t(), bias));
    } else {
      products.multiply_rows(x, weight.t(), bias,
                             [&](const float* output, int64_t first, int64_t last) { rows.take(output, first, last); });
    }
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
                               const Tensor& gain, const std::optional<Tensor>& norm_bias, const EndSettings& end, Precision precision) {
    const Tensor factor = Products::factor(x), weight_factor = Products::factor(weight);
    context->saved_data["x_type"] = x.scalar_type();
    context->saved_data["precision"] = static_cast<int64_t>(precision);
    return End::forward(*context, Products(precision), factor, weight_factor, bias, end.with(residual, gain, norm_bias),
                        {factor, weight_factor});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kLinear);
    const Products products(static_cast<Precision>(context->saved_data["precision"].toInt()));
    const variable_list kept = context->get_saved_variables();
    const Tensor &x = kept[ResidualNormRows::kKept], &weight = kept[ResidualNormRows::kKept + 1];
    const ResidualNormGradients of_norm = End::backward<Stored>(*context, kept, gradients);
    Tensor dx, dw;
    if (context->needs_input_grad(0)) dx = products.multiply_into(context->saved_data["x_type"].toScalarType(), of_norm.output, weight);
    if (context->needs_input_grad(1)) dw = products.multiply(of_norm.output.t(), x);
    return {dx, dw, of_norm.output_sums, of_norm.residual, of_norm.gain, of_norm.bias, Tensor(), Tensor()};
  }
};

/// What FeedForwardFunction takes beside tensors.
struct FeedForwardSettings {
  Activation activation;
  Dropout dropout;  // between the matrices
  EndSettings end;
  Precision precision;
  const NormSource* source;
};

template <class Stored>
class FeedForwardFunction : public torch::autograd::Function<FeedForwardFunction<Stored>> {
  using Rows = BiasedActivationRows<float, Stored>;
  using Products = LayerProducts<Stored>;
  enum Kept : size_t { kInner, kInnerBias, kOuter, kHidden, kBefore, kInput };  // for the backward pass; the last are RowsToKeep

 public:
  static variable_list forward(AutogradContext* context, const Tensor& x, const Tensor& inner_weight, const Tensor& inner_bias,
                               const Tensor& outer_weight, const Tensor& outer_bias, const Tensor& residual, const Tensor& gain,
                               const std::optional<Tensor>& norm_bias, const FeedForwardSettings& settings) {
    const Products products(settings.precision);
    const Tensor input = Products::factor(x), inner = Products::factor(inner_weight), outer = Products::factor(outer_weight);
    const auto [before, hidden] = is_on_gpu(x) ? hidden_on_gpu(products, input, inner, inner_bias, settings)
                                               : hidden_on_cpu(products, input, inner, inner_bias, settings);
    context->saved_data["activation"] = static_cast<int64_t>(settings.activation);
    context->saved_data["x_type"] = x.scalar_type();
    context->saved_data["precision"] = static_cast<int64_t>(settings.precision);
    keep_dropout(*context, settings.dropout);
    variable_list kept = {inner, inner_bias, outer, hidden, before};
    const variable_list of_input = RowsToKeep::of(*context, input, settings.source);
    kept.insert(kept.end(), of_input.begin(), of_input.end());
    return End::forward(*context, products, hidden, outer, outer_bias, settings.end.with(residual, gain, norm_bias), kept);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kLinear);
    const Products products(static_cast<Precision>(context->saved_data["precision"].toInt()));
    const variable_list all = context->get_saved_variables(), kept(all.begin() + ResidualNormRows::kKept, all.end());
    const ResidualNormGradients of_norm = End::backward<Stored>(*context, all, gradients);
    const Tensor& gradient = of_norm.output;
    const auto [inner_gradient, inner_bias_gradient] = is_on_gpu(gradient) ? through_activation_on_gpu(products, gradient, kept, *context)
                                                                           : through_activation(products, gradient, kept, *context);
    Tensor dx, d_inner, d_outer;
    if (context->needs_input_grad(0))
      dx = products.multiply_into(context->saved_data["x_type"].toScalarType(), inner_gradient, kept[kInner]);
    if (context->needs_input_grad(1)) d_inner = products.multiply(inner_gradient.t(), RowsToKeep::rows(*context, kept, kInput));
    if (context->needs_input_grad(3)) d_outer = products.multiply(gradient.t(), kept[kHidden]);
    const Tensor of_settings;
    return {dx, d_inner, inner_bias_gradient, d_outer, of_norm.output_sums, of_norm.residual, of_norm.gain, of_norm.bias, of_settings};
  }

 private:
  static BiasedActivation<float, Stored> activation() {
    if constexpr (Products::kIsRounded) {
      return row_kernels<float>().rounded_activation;
    } else {
      return row_kernels<float>().biased_activation;
    }
  }

  /// Hidden rows [T, F], and what the backward pass reads of the activation's input: undefined = nothing.
  struct Hidden {
    Tensor before, result;
  };

  static Hidden hidden_on_cpu(const Products& products, const Tensor& x, const Tensor& inner, const Tensor& bias,
                              const FeedForwardSettings& settings) {
    const bool needs_input = settings.activation != Activation::kRelu;
    const Tensor before = needs_input ? products.multiply(x, inner.t()) : Tensor();  // (T, D) x (D, F)
    return {before, activated(products, x, inner, bias, before, settings)};
  }

  static Hidden hidden_on_gpu(const Products& products, const Tensor& x, const Tensor& inner, const Tensor& bias,
                              const FeedForwardSettings& settings) {
    const bool is_relu = settings.activation == Activation::kRelu;
    if (is_relu && settings.dropout.rate == 0) return {Tensor(), Products::multiply_to_relu(x, inner.t(), bias)};
    const Tensor before = is_relu ? Products::multiply_to_relu(x, inner.t(), bias)
                                  : products.multiply_into(Products::kType, x, inner.t(), bias);  // (T, D) x (D, F)
    const Tensor result = is_relu ? before : at::empty_like(before);
    const ActivationRows<Stored> args = gpu_rows_of(before, result, settings.activation, settings.dropout);
    with_gpu_kernels(x, [&](const gpu::Kernels& kernels, void* stream) { return kernels.activation_forward(args, x.size(0), stream); });
    return {is_relu ? Tensor() : before, result};
  }

  static ActivationRows<Stored> gpu_rows_of(const Tensor& input, const Tensor& result, Activation activation, const Dropout& dropout) {
    return {.columns = result.size(1),
            .activation = activation,
            .dropout = dropout.rows(result.device()),
            .input = Products::data(input),
            .gradient = nullptr,
            .result = Products::data(result),
            .input_gradient = nullptr};
  }

  /// Does what through_activation does, in one pass over the gradient of the hidden rows, in place.
  static RoundedWithSums through_activation_on_gpu(const Products& products, const Tensor& gradient, const variable_list& kept,
                                                   AutogradContext& context) {
    const Tensor &hidden = kept[kHidden], result = products.multiply_into(Products::kType, gradient, kept[kOuter]);  // (T, D) x (D, F)
    const int64_t rows = hidden.size(0);
    const Tensor sums = at::empty({sum_blocks(rows), hidden.size(1)}, hidden.options().dtype(at::kFloat));
    const auto activation = static_cast<Activation>(context.saved_data["activation"].toInt());
    ActivationRows<Stored> args = gpu_rows_of(kept[kBefore], hidden, activation, kept_dropout(context));
    args.gradient = args.input_gradient = Products::data(result);
    with_gpu_kernels(gradient, [&](const gpu::Kernels& kernels, void* stream) {
      return kernels.activation_backward(gpu::ActivationGradientRows<Stored>{args, mutable_data_of<float>(sums)}, rows, stream);
    });
    return {result, sums.sum(0)};
  }

  /// The activation's rows: where they come from, and where they are. `before`: the inner products, if they are kept.
  static Rows rows_of(const Tensor& hidden, const Tensor& bias, const Tensor& before, Activation activation, const Dropout& dropout) {
    return {.columns = hidden.size(1),
            .activation = activation,
            .dropout = dropout.rows(),
            .first_row = 0,
            .input = data_of<float>(before),
            .bias = data_of<float>(bias),
            .result = Products::data(hidden),
            .gradient = nullptr,
            .input_gradient = nullptr,
            .bias_sums = nullptr};
  }

  /// dropout(f(x inner^T + bias)) [T, F]. Products that are kept are made already.
  static Tensor activated(const Products& products, const Tensor& x, const Tensor& inner, const Tensor& bias, const Tensor& before,
                          const FeedForwardSettings& settings) {
    Tensor result = Products::empty({x.size(0), inner.size(0)});
    const Rows args = rows_of(result, bias, before, settings.activation, settings.dropout);
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
                                            AutogradContext& context) {
    const Dropout dropout = kept_dropout(context);
    const Tensor &bias = kept[kInnerBias], &outer = kept[kOuter], &hidden = kept[kHidden], &before = kept[kBefore];
    const Tensor result = at::empty_like(hidden);
    const Tensor sums = at::empty({sum_blocks(hidden.size(0)), hidden.size(1)}, at::kFloat);
    Rows args = rows_of(hidden, bias, before, static_cast<Activation>(context.saved_data["activation"].toInt()), dropout);
    args.input_gradient = Products::data(result);
    args.bias_sums = mutable_data_of<float>(sums);
    products.multiply_rows(gradient, outer, {}, [&](float* rows, int64_t begin, int64_t end) {  // (T, D) x (D, F)
      Rows of_block = args;
      of_block.first_row = begin;
      of_block.gradient = rows;
      activation().backward(of_block, begin, end);
    });
    return {result, sums.sum(0)};
  }
};

/// True if there are kernels for a layer and its end.
bool has_layers(const ResidualEnd& end) {
  return end.residual.scalar_type() == at::kFloat && has_row_kernels(end.residual);
}

/// Calls f with a number of what the products' factors are stored in.
template <class F>
ResidualNorm with_stored(Precision precision, const F& f) {
  const TimedPart timed(ProfilePart::kLinear);
  const auto named = [](const variable_list& results) { return ResidualNorm{results[0], results[1]}; };
  if (precision == Precision::kBf16) return named(f(uint16_t()));
  return named(f(float()));
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Precision precision, bool is_rounded, const NormSource* source) {
  const TimedPart timed(ProfilePart::kLinear);
  if (precision == Precision::kBf16 && weight.scalar_type() == at::kFloat)
    return LinearFunction<uint16_t>::apply(x, weight, optional_of(bias), precision, is_rounded ? at::kBFloat16 : at::kFloat, source);
  if (!at::GradMode::is_enabled()) return matmul(x, weight.t(), bias, precision);
  return LinearFunction<float>::apply(x, weight, optional_of(bias), precision, at::kFloat, source);
}

Tensor activation_dropout(const Tensor& x, Activation activation, const Dropout& dropout) {
  const TimedPart timed(ProfilePart::kActivation);
  if (!has_row_kernels(x)) return reference::activation_dropout(x, activation, dropout);
  if (!at::GradMode::is_enabled()) return activation_forward(x.contiguous(), activation, dropout);
  return ActivationFunction::apply(x.contiguous(), activation, dropout);
}

ResidualNorm linear_to_residual(const Tensor& x, const LinearWeights& weights, const ResidualEnd& end, Precision precision) {
  if (!has_layers(end)) return residual_norm(end, linear(x, weights.weight, weights.bias, precision));
  return with_stored(precision, [&](auto stored) {
    return LinearToResidualFunction<decltype(stored)>::apply(x.contiguous(), weights.weight, weights.bias, end.residual.contiguous(),
                                                             end.norm.gain, optional_of(end.norm.bias), EndSettings(end), precision);
  });
}

ResidualNorm feed_forward(const Tensor& x, const FeedForwardLayer& layer, const ResidualEnd& end, Precision precision,
                          const NormSource* source) {
  const auto& [inner, outer, activation, dropout] = layer;
  if (!has_layers(end)) {
    const Tensor products = linear(x, inner.weight, inner.bias, precision, /*is_rounded=*/false, source);  // (T, D) -> (T, F)
    return linear_to_residual(activation_dropout(products, activation, dropout), outer, end, precision);
  }
  const FeedForwardSettings settings = {activation, dropout, EndSettings(end), precision, source};
  const Tensor rows = x.contiguous(), residual = end.residual.contiguous();
  return with_stored(precision, [&](auto stored) {
    return FeedForwardFunction<decltype(stored)>::apply(rows, layer.inner.weight, layer.inner.bias, layer.outer.weight, layer.outer.bias,
                                                        residual, end.norm.gain, optional_of(end.norm.bias), settings);
  });
}

}  // namespace lacuna
