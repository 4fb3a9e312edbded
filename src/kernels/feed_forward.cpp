#include "kernels/feed_forward.h"

#include <algorithm>

#include "base/profile.h"
#include "kernels/activation.h"
#include "kernels/bf16_product.h"
#include "kernels/linear.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rows between the two products at a time: blocks of kRowsPerSum that stay in cache, and enough for products at full speed.
constexpr int64_t kRowsPerChunk = 4 * kRowsPerSum;

/// Calls f(begin, rows) for the chunks of so many rows.
template <class F>
void for_chunks(int64_t rows, F f) {
  for (int64_t begin = 0; begin < rows; begin += kRowsPerChunk) f(begin, std::min(kRowsPerChunk, rows - begin));
}

/// Rows [T, F] of float of which a chunk at a time exists, or all of them.
class ChunkedRows {
 public:
  ChunkedRows(int64_t rows, int64_t columns, bool keeps_all)
      : keeps_all_(keeps_all), values_(at::empty({keeps_all ? rows : std::min(rows, kRowsPerChunk), columns}, at::kFloat)) {}
  Tensor chunk(int64_t begin, int64_t rows) const { return values_.narrow(0, keeps_all_ ? begin : 0, rows); }
  const Tensor& values() const { return values_; }

 private:
  bool keeps_all_;
  Tensor values_;
};

class Bf16FeedForwardFunction : public torch::autograd::Function<Bf16FeedForwardFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& inner_weight, const Tensor& inner_bias,
                        const Tensor& outer_weight, const Tensor& outer_bias, bool is_gelu, const Dropout& dropout) {
    const Tensor rounded_x = rounded_to_bf16(x), inner = rounded_to_bf16(inner_weight), outer = rounded_to_bf16(outer_weight);
    const Tensor hidden = at::empty({x.size(0), inner.size(0)}, inner.options());
    const ChunkedRows products(x.size(0), inner.size(0), /*keeps_all=*/is_gelu);
    for_chunks(x.size(0), [&](int64_t begin, int64_t rows) {
      const Tensor product = products.chunk(begin, rows);
      bf16_product(product, rounded_x.narrow(0, begin, rows), inner.t());  // (rows, D) x (D, F)
      const TimedPart timed(ProfilePart::kActivation);
      const RoundedActivationRows<float> args = {.columns = inner.size(0),
                                                 .first_row = begin,
                                                 .is_gelu = is_gelu,
                                                 .dropout = dropout.rows(),
                                                 .input = data_of<float>(product),
                                                 .bias = data_of<float>(inner_bias),
                                                 .result = bf16_bits_of(hidden),
                                                 .gradient = nullptr,
                                                 .input_gradient = nullptr,
                                                 .bias_sums = nullptr};
      for_sum_blocks(row_kernels<float>().rounded_activation_forward, args, begin, begin + rows);
    });
    context->save_for_backward({rounded_x, inner, inner_bias, outer, hidden, is_gelu ? products.values() : Tensor()});
    keep_dropout(*context, dropout);
    return bf16_linear(hidden, outer, outer_bias);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kLinear);
    const variable_list kept = context->get_saved_variables();
    const Tensor &x = kept[0], &inner = kept[1], &hidden = kept[4];
    const auto [gradient, outer_bias_gradient] = rounded_with_sums(gradients[0].contiguous());
    const auto [inner_gradient, inner_bias_gradient] = through_activation(kept, gradient, kept_dropout(*context));
    const auto wanted = [&](size_t input, const Tensor& a, const Tensor& b) {
      if (!context->needs_input_grad(input)) return Tensor();
      Tensor result = at::empty({a.size(0), b.size(1)}, at::kFloat);
      bf16_product(result, a, b);
      return result;
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
  /// The gradient of the inner product [T, F] in bf16, and its column sums, from the result's [T, D].
  static RoundedWithSums through_activation(const variable_list& kept, const Tensor& gradient, const Dropout& dropout) {
    const Tensor &bias = kept[2], &outer = kept[3], &hidden = kept[4], &products = kept[5];
    const int64_t count = hidden.size(0), columns = hidden.size(1);
    const Tensor result = at::empty_like(hidden), sums = at::empty({sum_blocks(count), columns}, at::kFloat);
    const ChunkedRows hidden_gradients(count, columns, /*keeps_all=*/false);
    for_chunks(count, [&](int64_t begin, int64_t rows) {
      const Tensor hidden_gradient = hidden_gradients.chunk(begin, rows);
      bf16_product(hidden_gradient, gradient.narrow(0, begin, rows), outer);  // (rows, D) x (D, F)
      const TimedPart timed(ProfilePart::kActivation);
      const RoundedActivationRows<float> args = {.columns = columns,
                                                 .first_row = begin,
                                                 .is_gelu = products.defined(),
                                                 .dropout = dropout.rows(),
                                                 .input = products.defined() ? data_of<float>(products.narrow(0, begin, rows)) : nullptr,
                                                 .bias = data_of<float>(bias),
                                                 .result = bf16_bits_of(hidden),
                                                 .gradient = data_of<float>(hidden_gradient),
                                                 .input_gradient = bf16_bits_of(result),
                                                 .bias_sums = mutable_data_of<float>(sums)};
      for_sum_blocks(row_kernels<float>().rounded_activation_backward, args, begin, begin + rows);
    });
    return {result, sums.sum(0)};
  }
};

}  // namespace

Tensor feed_forward(const Tensor& x, const LinearWeights& inner, const LinearWeights& outer, bool is_gelu, const Dropout& dropout,
                    bool in_bf16) {
  if (in_bf16 && x.scalar_type() == at::kFloat && has_row_kernels(x)) {
    const TimedPart timed(ProfilePart::kLinear);
    return Bf16FeedForwardFunction::apply(x.contiguous(), inner.weight, inner.bias, outer.weight, outer.bias, is_gelu, dropout);
  }
  const Tensor hidden = activation_dropout(linear(x, inner.weight, inner.bias, in_bf16), is_gelu, dropout);  // (T, D) -> (T, F)
  return linear(hidden, outer.weight, outer.bias, in_bf16);
}

}  // namespace lacuna
