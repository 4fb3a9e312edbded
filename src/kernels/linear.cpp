#include "kernels/linear.h"

#include <atomic>

#include "base/profile.h"
#include "kernels/layer_products.h"
#include "kernels/packed_product.h"
#include "kernels/row_tensors.h"
#include "kernels/rows_to_keep.h"

namespace lacuna {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::atomic<MatmulBackend>& current_backend() {
  static std::atomic<MatmulBackend> backend = matmul_backends().front();
  return backend;
}

/// Calls f with the kernel of our own loops for such a product; false where they are not what multiplies.
template <class F>
bool with_block_kernel(const Tensor& a, const Tensor& b, FactorPrecision precision, const F& f) {
  static const bool has_tiles = has_amx();
  if (!a.is_cpu() || a.scalar_type() != at::kFloat || a.numel() == 0 || b.numel() == 0) return false;
  if (precision == FactorPrecision::kBf16x3 && has_tiles) {
    f(amx::kBf16x3Blocks);
  } else if (matmul_backend() == MatmulBackend::kBlocks) {
    static const BlockKernel<FloatFactor> best = float_block_kernels().front().kernel;
    f(best);
  } else {
    return false;
  }
  return true;
}

/// result = or += a x b, plus `bias` if that is defined, by our own loops; false where they are not what multiplies.
bool multiply_in_blocks(const Tensor& result, const Tensor& a, const Tensor& b, bool add, const Tensor& bias, FactorPrecision precision) {
  return with_block_kernel(a, b, precision, [&](const auto& kernel) { product_in_blocks(kernel, result, a, b, add, bias); });
}

bool uses_onednn(const Tensor& a) {
  return matmul_backend() == MatmulBackend::kOneDnn && a.is_cpu() && a.scalar_type() == at::kFloat && a.size(0) > 0;
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

/// a x b + bias; `bias` may be undefined.
Tensor multiply(const Tensor& a, const Tensor& b, const Tensor& bias, FactorPrecision precision) {
  const TimedProduct timed(product_shape(a, b, precision));
  Tensor result = at::empty({a.size(0), b.size(1)}, a.options());
  if (multiply_in_blocks(result, a, b, /*add=*/false, bias, precision)) return result;
  if (uses_onednn(a)) return onednn_linear(a, b.t(), bias);
  return bias.defined() ? at::addmm_out(result, bias, a, b) : at::mm_out(result, a, b);
}

template <class Stored>
class LinearFunction : public torch::autograd::Function<LinearFunction<Stored>> {
  using Products = LayerProducts<Stored>;

 public:
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias,
                        FactorPrecision precision, at::ScalarType result, const NormSource* source) {
    const Tensor factor = Products::factor(x), weight_factor = Products::factor(weight);
    variable_list kept = RowsToKeep::of(*context, factor, source);
    kept.push_back(weight_factor);
    context->save_for_backward(kept);
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["x_type"] = x.scalar_type();
    context->saved_data["precision"] = static_cast<int64_t>(precision);
    return Products(precision).linear_into(result, factor, weight_factor, bias.value_or(Tensor()));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const TimedPart timed(ProfilePart::kLinear);
    const Products products(static_cast<FactorPrecision>(context->saved_data["precision"].toInt()));
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

MatmulBackend matmul_backend() {
  return current_backend();
}

void set_matmul_backend(MatmulBackend backend) {
  current_backend() = backend;
}

std::vector<MatmulBackend> matmul_backends() {
  const bool is_amd = __builtin_cpu_is("amd") != 0;
  std::vector<MatmulBackend> backends;
  if (!is_amd) backends.push_back(MatmulBackend::kDefault);
  backends.push_back(MatmulBackend::kBlocks);
  backends.push_back(MatmulBackend::kOneDnn);
  if (is_amd) backends.push_back(MatmulBackend::kDefault);
  return backends;
}

const char* name_of(MatmulBackend backend) {
  switch (backend) {
    case MatmulBackend::kDefault:
      break;
    case MatmulBackend::kOneDnn:
      return "onednn";
    case MatmulBackend::kBlocks:
      return "blocks";
  }
  return "default";
}

Tensor product_with_transposed(const Tensor& a, const Tensor& b, const Tensor& bias, FactorPrecision precision) {
  return multiply(a, b.t(), bias, precision);
}

Tensor product(const Tensor& a, const Tensor& b, FactorPrecision precision) {
  return multiply(a, b, {}, precision);
}

void product_by_row_blocks(const Tensor& a, const Tensor& b, const Tensor& bias, int64_t block, const RowBlockUser& use,
                           FactorPrecision precision) {
  if (with_block_kernel(a, b, precision, [&](const auto& kernel) {
        const TimedProduct timed(product_shape(a, b, precision));
        product_by_row_blocks(kernel, a, b, bias, block, use);
      }))
    return;
  use_row_blocks(multiply(a, b, bias, precision), block, use);
}

Tensor product_of_transposed(const Tensor& a, const Tensor& b, FactorPrecision precision) {
  return multiply(a.t(), b, {}, precision);
}

void add_product_of_transposed(Tensor& to, const Tensor& a, const Tensor& b, FactorPrecision precision) {
  const TimedProduct timed(product_shape(a.t(), b, precision, /*add=*/true));
  if (multiply_in_blocks(to, a.t(), b, /*add=*/true, {}, precision)) return;
  if (uses_onednn(a)) {
    to.add_(onednn_linear(a.t(), b.t(), {}));
  } else {
    to.addmm_(a.t(), b);
  }
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, FactorPrecision precision, bool is_rounded,
              const NormSource* source) {
  const TimedPart timed(ProfilePart::kLinear);
  if (precision == FactorPrecision::kBf16 && weight.scalar_type() == at::kFloat)
    return LinearFunction<uint16_t>::apply(x, weight, optional_of(bias), precision, is_rounded ? at::kBFloat16 : at::kFloat, source);
  if (!at::GradMode::is_enabled()) return product_with_transposed(x, weight, bias, precision);
  return LinearFunction<float>::apply(x, weight, optional_of(bias), precision, at::kFloat, source);
}

}  // namespace lacuna
