#include "kernels/linear.h"

#include <atomic>

#include "base/profile.h"
#include "kernels/bf16_product.h"
#include "kernels/packed_product.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

MatmulBackend best_backend() {
  return __builtin_cpu_is("amd") ? MatmulBackend::kOneDnn : MatmulBackend::kDefault;
}

std::atomic<MatmulBackend>& current_backend() {
  static std::atomic<MatmulBackend> backend = best_backend();
  return backend;
}

bool uses_onednn(const Tensor& a) {
  return matmul_backend() == MatmulBackend::kOneDnn && a.is_cpu() && a.scalar_type() == at::kFloat && a.size(0) > 0;
}

bool uses_tiles(const Tensor& a, const Tensor& b, FactorPrecision precision) {
  static const bool has_tiles = has_amx();
  return has_tiles && precision == FactorPrecision::kBf16x3 && a.is_cpu() && a.scalar_type() == at::kFloat && a.numel() > 0 &&
         b.numel() > 0;
}

/// a x b + bias [M, N].
Tensor from_tiles(const Tensor& a, const Tensor& b, const Tensor& bias) {
  Tensor result = at::empty({a.size(0), b.size(1)}, a.options());
  product_in_tiles(result, a, b, /*add=*/false, bias);
  return result;
}

/// x w^T + bias through oneDNN, which LibTorch registers as an operator.
Tensor onednn_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  using Scalars = c10::List<std::optional<at::Scalar>>;
  static const auto linear_pointwise = c10::Dispatcher::singleton()
                                           .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
                                           .typed<Tensor(const Tensor&, const Tensor&, const std::optional<Tensor>&, std::string_view,
                                                         Scalars, std::optional<std::string_view>)>();
  return linear_pointwise.call(x, weight, optional_of(bias), "none", Scalars(), std::nullopt);
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                        FactorPrecision precision) {
    context->save_for_backward({x, weight});
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["precision"] = static_cast<int64_t>(precision);
    return product_with_transposed(x, weight, bias.value_or(Tensor()), precision);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kLinear);
    const variable_list kept = context->get_saved_variables();
    const auto precision = static_cast<FactorPrecision>(context->saved_data["precision"].toInt());
    const Tensor gradient = gradients[0].contiguous();
    Tensor dx, dw, db;
    if (context->needs_input_grad(0)) dx = product(gradient, kept[1], precision);
    if (context->needs_input_grad(1)) dw = product_of_transposed(gradient, kept[0], precision);
    if (context->saved_data["has_bias"].toBool() && context->needs_input_grad(2)) db = gradient.sum(0);
    return {dx, dw, db, Tensor()};
  }
};

/// Keeps the rounded factors for the backward pass: half the memory, and nothing is rounded twice.
class Bf16LinearFunction : public torch::autograd::Function<Bf16LinearFunction> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
    const Tensor rounded_x = rounded_to_bf16(x), rounded_weight = rounded_to_bf16(weight);
    context->save_for_backward({rounded_x, rounded_weight});
    context->saved_data["has_bias"] = bias.has_value();
    return bf16_linear(rounded_x, rounded_weight, bias.value_or(Tensor()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kLinear);
    const variable_list kept = context->get_saved_variables();
    const Tensor &x = kept[0], &weight = kept[1], gradient = gradients[0].contiguous();
    const bool wants_sums = context->saved_data["has_bias"].toBool() && context->needs_input_grad(2);
    const auto [rounded, db] = wants_sums ? rounded_with_sums(gradient) : RoundedWithSums{rounded_to_bf16(gradient), {}};
    Tensor dx, dw;
    if (context->needs_input_grad(0)) bf16_product(dx = at::empty(x.sizes(), gradient.options()), rounded, weight);
    if (context->needs_input_grad(1)) bf16_product(dw = at::empty(weight.sizes(), gradient.options()), rounded.t(), x);
    return {dx, dw, db};
  }
};

}  // namespace

MatmulBackend matmul_backend() {
  return current_backend();
}

void set_matmul_backend(MatmulBackend backend) {
  current_backend() = backend;
}

const char* name_of(MatmulBackend backend) {
  return backend == MatmulBackend::kOneDnn ? "onednn" : "default";
}

Tensor product_with_transposed(const Tensor& a, const Tensor& b, const Tensor& bias, FactorPrecision precision) {
  const TimedProduct timed(product_shape(a, b.t(), precision));
  if (uses_tiles(a, b, precision)) return from_tiles(a, b.t(), bias);
  if (uses_onednn(a)) return onednn_linear(a, b, bias);
  return bias.defined() ? at::addmm(bias, a, b.t()) : at::mm(a, b.t());
}

Tensor product(const Tensor& a, const Tensor& b, FactorPrecision precision) {
  const TimedProduct timed(product_shape(a, b, precision));
  if (uses_tiles(a, b, precision)) return from_tiles(a, b, {});
  return uses_onednn(a) ? onednn_linear(a, b.t(), {}) : at::mm(a, b);
}

Tensor product_of_transposed(const Tensor& a, const Tensor& b, FactorPrecision precision) {
  const TimedProduct timed(product_shape(a.t(), b, precision));
  if (uses_tiles(a, b, precision)) return from_tiles(a.t(), b, {});
  return uses_onednn(a) ? onednn_linear(a.t(), b.t(), {}) : at::mm(a.t(), b);
}

void add_product_of_transposed(Tensor& to, const Tensor& a, const Tensor& b, FactorPrecision precision) {
  const TimedProduct timed(product_shape(a.t(), b, precision, /*add=*/true));
  if (uses_tiles(a, b, precision)) return product_in_tiles(to, a.t(), b, /*add=*/true, {});
  if (uses_onednn(a)) {
    to.add_(onednn_linear(a.t(), b.t(), {}));
  } else {
    to.addmm_(a.t(), b);
  }
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, FactorPrecision precision) {
  const TimedPart timed(ProfilePart::kLinear);
  if (precision == FactorPrecision::kBf16 && x.scalar_type() == at::kFloat) return Bf16LinearFunction::apply(x, weight, optional_of(bias));
  if (!at::GradMode::is_enabled()) return product_with_transposed(x, weight, bias, precision);
  return LinearFunction::apply(x, weight, optional_of(bias), precision);
}

}  // namespace lacuna
