#include "kernels/feed_forward.h"

#include <type_traits>

#include "base/profile.h"
#include "kernels/activation.h"
#include "kernels/bf16_product.h"
#include "kernels/linear.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Its products, and the numbers that stand between them: Stored is float, or uint16_t (bf16, as bits) for factors in bf16.
template <class Stored>
class Layer {
 public:
  static constexpr bool kIsRounded = std::is_same_v<Stored, uint16_t>;

  explicit Layer(FactorPrecision precision) : precision_(precision) {}

  static Tensor factor(const Tensor& x) { return kIsRounded ? rounded_to_bf16(x) : x; }
  static Tensor empty(at::IntArrayRef sizes) { return at::empty(sizes, kIsRounded ? at::kBFloat16 : at::kFloat); }
  static Stored* data(const Tensor& numbers) { return static_cast<Stored*>(numbers.mutable_data_ptr()); }
  static BiasedActivation<float, Stored> activation() {
    if constexpr (kIsRounded) {
      return row_kernels<float>().rounded_activation;
    } else {
      return row_kernels<float>().biased_activation;
    }
  }
  static RoundedWithSums with_sums(const Tensor& rows) { return kIsRounded ? rounded_with_sums(rows) : RoundedWithSums{rows, rows.sum(0)}; }

  /// a x b [M, N]
  Tensor multiply(const Tensor& a, const Tensor& b) const {
    if constexpr (!kIsRounded) return product(a, b, precision_);
    Tensor result = at::empty({a.size(0), b.size(1)}, at::kFloat);
    bf16_product(result, a, b);
    return result;
  }
  /// x weight^T + bias
  Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    return kIsRounded ? bf16_linear(x, weight, bias) : product_with_transposed(x, weight, bias, precision_);
  }
  /// a x b, kRowsPerSum rows at a time
  void multiply_rows(const Tensor& a, const Tensor& b, const RowBlockUser& use) const {
    kIsRounded ? bf16_product_by_row_blocks(a, b, kRowsPerSum, use) : product_by_row_blocks(a, b, kRowsPerSum, use, precision_);
  }

 private:
  FactorPrecision precision_;
};

template <class Stored>
class FeedForwardFunction : public torch::autograd::Function<FeedForwardFunction<Stored>> {
  using Rows = BiasedActivationRows<float, Stored>;
  using OfLayer = Layer<Stored>;

 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& inner_weight, const Tensor& inner_bias,
                        const Tensor& outer_weight, const Tensor& outer_bias, bool is_gelu, const Dropout& dropout,
                        FactorPrecision precision) {
    const OfLayer layer(precision);
    const Tensor input = layer.factor(x), inner = layer.factor(inner_weight), outer = layer.factor(outer_weight);
    const Tensor products = is_gelu ? layer.multiply(input, inner.t()) : Tensor();  // (T, D) x (D, F), needed again
    const Tensor hidden = activated(layer, input, inner, inner_bias, products, dropout);
    context->save_for_backward({input, inner, inner_bias, outer, hidden, products});
    context->saved_data["precision"] = static_cast<int64_t>(precision);
    keep_dropout(*context, dropout);
    return layer.linear(hidden, outer, outer_bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kLinear);
    const OfLayer layer(static_cast<FactorPrecision>(context->saved_data["precision"].toInt()));
    const variable_list kept = context->get_saved_variables();
    const Tensor &x = kept[0], &inner = kept[1], &hidden = kept[4];
    const auto [gradient, outer_bias_gradient] = layer.with_sums(gradients[0].contiguous());
    const auto [inner_gradient, inner_bias_gradient] = through_activation(layer, gradient, kept, kept_dropout(*context));
    const auto wanted = [&](size_t input, const Tensor& a, const Tensor& b) {
      return context->needs_input_grad(input) ? layer.multiply(a, b) : Tensor();
    };
    return {wanted(0, inner_gradient, inner),
            wanted(1, inner_gradient.t(), x),
            inner_bias_gradient,
            wanted(3, gradient.t(), hidden),
            outer_bias_gradient,
            Tensor(),
            Tensor(),
            Tensor()};
  }

 private:
  /// dropout(f(x inner^T + bias)) [T, F]. gelu's products are made already.
  static Tensor activated(const OfLayer& layer, const Tensor& x, const Tensor& inner, const Tensor& bias, const Tensor& products,
                          const Dropout& dropout) {
    Tensor result = layer.empty({x.size(0), inner.size(0)});
    const Rows args = {.columns = inner.size(0),
                       .is_gelu = products.defined(),
                       .dropout = dropout.rows(),
                       .first_row = 0,
                       .input = data_of<float>(products),
                       .bias = data_of<float>(bias),
                       .result = layer.data(result),
                       .gradient = nullptr,
                       .input_gradient = nullptr,
                       .bias_sums = nullptr};
    const auto activate = layer.activation().forward;
    if (products.defined()) {
      const TimedPart timed(ProfilePart::kActivation);
      for_rows(activate, args, x.size(0));
      return result;
    }
    layer.multiply_rows(x, inner.t(), [&](float* rows, int64_t begin, int64_t end) {
      Rows of_block = args;
      of_block.first_row = begin;
      of_block.input = rows;
      activate(of_block, begin, end);
    });
    return result;
  }

  /// The gradient of the inner products [T, F], and its column sums, from that of the result.
  static RoundedWithSums through_activation(const OfLayer& layer, const Tensor& gradient, const variable_list& kept,
                                            const Dropout& dropout) {
    const Tensor &bias = kept[2], &outer = kept[3], &hidden = kept[4], &products = kept[5];
    const Tensor result = at::empty_like(hidden);
    const Tensor sums = at::empty({sum_blocks(hidden.size(0)), hidden.size(1)}, at::kFloat);
    const Rows args = {.columns = hidden.size(1),
                       .is_gelu = products.defined(),
                       .dropout = dropout.rows(),
                       .first_row = 0,
                       .input = data_of<float>(products),
                       .bias = data_of<float>(bias),
                       .result = layer.data(hidden),
                       .gradient = nullptr,
                       .input_gradient = layer.data(result),
                       .bias_sums = mutable_data_of<float>(sums)};
    layer.multiply_rows(gradient, outer, [&](float* rows, int64_t begin, int64_t end) {  // (T, D) x (D, F)
      Rows of_block = args;
      of_block.first_row = begin;
      of_block.gradient = rows;
      layer.activation().backward(of_block, begin, end);
    });
    return {result, sums.sum(0)};
  }
};

}  // namespace

Tensor feed_forward(const Tensor& x, const LinearWeights& inner, const LinearWeights& outer, bool is_gelu, const Dropout& dropout,
                    FactorPrecision precision) {
  if (x.is_cpu() && x.scalar_type() == at::kFloat) {
    const TimedPart timed(ProfilePart::kLinear);
    const auto apply = [&]<class Stored>(Stored) {
      return FeedForwardFunction<Stored>::apply(x.contiguous(), inner.weight, inner.bias, outer.weight, outer.bias, is_gelu, dropout,
                                                precision);
    };
    return precision == FactorPrecision::kBf16 ? apply(uint16_t()) : apply(float());
  }
  const Tensor hidden = activation_dropout(linear(x, inner.weight, inner.bias, precision), is_gelu, dropout);  // (T, D) -> (T, F)
  return linear(hidden, outer.weight, outer.bias, precision);
}

}  // namespace lacuna
