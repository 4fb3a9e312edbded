#include "kernels/linear.h"

#include "kernels/layer_products.h"
#include "kernels/profile.h"
#include "kernels/row_tensors.h"

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

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Precision precision, bool is_rounded, const NormSource* source) {
  const TimedPart timed(ProfilePart::kLinear);
  if (precision == Precision::kBf16 && weight.scalar_type() == at::kFloat)
    return LinearFunction<uint16_t>::apply(x, weight, optional_of(bias), precision, is_rounded ? at::kBFloat16 : at::kFloat, source);
  if (!at::GradMode::is_enabled()) return matmul(x, weight.t(), bias, precision);
  return LinearFunction<float>::apply(x, weight, optional_of(bias), precision, at::kFloat, source);
}

}  // namespace lacuna
