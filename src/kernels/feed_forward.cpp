#include "kernels/feed_forward.h"

#include "base/profile.h"
#include "kernels/activation.h"
#include "kernels/bf16_product.h"
#include "kernels/linear.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// a x b [M, N], of factors in bf16.
Tensor product_of_bf16(const Tensor& a, const Tensor& b) {
  Tensor result = at::empty({a.size(0), b.size(1)}, at::kFloat);
  bf16_product(result, a, b);
  return result;
}

class Bf16FeedForwardFunction : public torch::autograd::Function<Bf16FeedForwardFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& inner_weight, const Tensor& inner_bias,
                        const Tensor& outer_weight, const Tensor& outer_bias, bool is_gelu, const Dropout& dropout) {
    const Tensor rounded_x = rounded_to_bf16(x), inner = rounded_to_bf16(inner_weight), outer = rounded_to_bf16(outer_weight);
    const Tensor products = is_gelu ? product_of_bf16(rounded_x, inner.t()) : Tensor();  // (T, D) x (D, F), needed again
    const Tensor hidden = activated(rounded_x, inner, inner_bias, products, dropout);
    context->save_for_backward({rounded_x, inner, inner_bias, outer, hidden, products});
    keep_dropout(*context, dropout);
    return bf16_linear(hidden, outer, outer_bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kLinear);
    const variable_list kept = context->get_saved_variables();
    const Tensor &x = kept[0], &inner = kept[1], &hidden = kept[4];
    const auto [gradient, outer_bias_gradient] = rounded_with_sums(gradients[0].contiguous());
    const auto [inner_gradient, inner_bias_gradient] = through_activation(gradient, kept, kept_dropout(*context));
    const auto wanted = [&](size_t input, const Tensor& a, const Tensor& b) {
      return context->needs_input_grad(input) ? product_of_bf16(a, b) : Tensor();
    };
    return {wanted(0, inner_gradient, inner),
            wanted(1, inner_gradient.t(), x),
            inner_bias_gradient,
            wanted(3, gradient.t(), hidden),
            outer_bias_gradient,
            Tensor(),
            Tensor()};
  }

 private:
  /// dropout(f(x inner^T + bias)) [T, F] in bf16. gelu's products are made already.
  static Tensor activated(const Tensor& x, const Tensor& inner, const Tensor& bias, const Tensor& products, const Dropout& dropout) {
    Tensor result = at::empty({x.size(0), inner.size(0)}, x.options());
    const RoundedActivationRows<float> args = {.columns = inner.size(0),
                                               .is_gelu = products.defined(),
                                               .dropout = dropout.rows(),
                                               .first_row = 0,
                                               .input = data_of<float>(products),
                                               .bias = data_of<float>(bias),
                                               .result = bf16_bits_of(result),
                                               .gradient = nullptr,
                                               .input_gradient = nullptr,
                                               .bias_sums = nullptr};
    const auto activate = row_kernels<float>().rounded_activation_forward;
    if (products.defined()) {
      const TimedPart timed(ProfilePart::kActivation);
      for_rows(activate, args, x.size(0));
      return result;
    }
    bf16_product_by_row_blocks(x, inner.t(), kRowsPerSum, [&](float* rows, int64_t begin, int64_t end) {
      RoundedActivationRows<float> of_block = args;
      of_block.first_row = begin;
      of_block.input = rows;
      activate(of_block, begin, end);
    });
    return result;
  }

  /// The gradient of the inner products [T, F] in bf16, and its column sums, from that of the result.
  static RoundedWithSums through_activation(const Tensor& gradient, const variable_list& kept, const Dropout& dropout) {
    const Tensor &bias = kept[2], &outer = kept[3], &hidden = kept[4], &products = kept[5];
    const Tensor result = at::empty_like(hidden);
    const Tensor sums = at::empty({sum_blocks(hidden.size(0)), hidden.size(1)}, at::kFloat);
    const RoundedActivationRows<float> args = {.columns = hidden.size(1),
                                               .is_gelu = products.defined(),
                                               .dropout = dropout.rows(),
                                               .first_row = 0,
                                               .input = data_of<float>(products),
                                               .bias = data_of<float>(bias),
                                               .result = bf16_bits_of(hidden),
                                               .gradient = nullptr,
                                               .input_gradient = bf16_bits_of(result),
                                               .bias_sums = mutable_data_of<float>(sums)};
    bf16_product_by_row_blocks(gradient, outer, kRowsPerSum, [&](float* rows, int64_t begin, int64_t end) {  // (T, D) x (D, F)
      RoundedActivationRows<float> of_block = args;
      of_block.first_row = begin;
      of_block.gradient = rows;
      row_kernels<float>().rounded_activation_backward(of_block, begin, end);
    });
    return {result, sums.sum(0)};
  }
};

}  // namespace

Tensor feed_forward(const Tensor& x, const LinearWeights& inner, const LinearWeights& outer, bool is_gelu, const Dropout& dropout,
                    FactorPrecision precision) {
  if (precision == FactorPrecision::kBf16 && x.scalar_type() == at::kFloat && has_row_kernels(x)) {
    const TimedPart timed(ProfilePart::kLinear);
    return Bf16FeedForwardFunction::apply(x.contiguous(), inner.weight, inner.bias, outer.weight, outer.bias, is_gelu, dropout);
  }
  const Tensor hidden = activation_dropout(linear(x, inner.weight, inner.bias, precision), is_gelu, dropout);  // (T, D) -> (T, F)
  return linear(hidden, outer.weight, outer.bias, precision);
}

}  // namespace lacuna
