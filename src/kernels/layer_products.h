#pragma once

// What the autograd functions of linear layers multiply with. Included by sources that have base/libtorch.h precompiled.

#include <type_traits>

#include "kernels/bf16_product.h"
#include "kernels/linear.h"
#include "kernels/row_tensors.h"

namespace lacuna {

/// The products of a layer and of its gradients. Stored is the type of their factors: float, or uint16_t for bf16 (as bits). Factors of
/// bf16 are kept rounded for the backward pass, which halves the memory and rounds nothing twice.
template <class Stored>
class LayerProducts {
 public:
  static constexpr bool kIsRounded = std::is_same_v<Stored, uint16_t>;

  explicit LayerProducts(FactorPrecision precision) : precision_(precision) {}

  static Tensor factor(const Tensor& x) { return kIsRounded ? rounded_to_bf16(x) : x; }
  /// The same for rows [T, N], with their column sums [N] (taken before rounding) if these are wanted.
  static RoundedWithSums factor_with_sums(const Tensor& rows, bool wants_sums) {
    if (!wants_sums) return {factor(rows), {}};
    return kIsRounded ? rounded_with_sums(rows) : RoundedWithSums{rows, rows.sum(0)};
  }
  static Tensor empty(at::IntArrayRef sizes) { return at::empty(sizes, kIsRounded ? at::kBFloat16 : at::kFloat); }
  static Stored* data(const Tensor& numbers) { return static_cast<Stored*>(numbers.mutable_data_ptr()); }

  /// a x b [M, N]
  Tensor multiply(const Tensor& a, const Tensor& b) const {
    if constexpr (!kIsRounded) return product(a, b, precision_);
    Tensor result = at::empty({a.size(0), b.size(1)}, a.options().dtype(at::kFloat));
    bf16_product(result, a, b);
    return result;
  }
  /// result = or += a x b
  void multiply_to(const Tensor& result, const Tensor& a, const Tensor& b, bool add) const {
    if constexpr (kIsRounded) {
      bf16_product(result, a, b, add);
    } else {
      Tensor to = result;
      if (add) return add_product_of_transposed(to, a.t(), b, precision_);
      to.copy_(product(a, b, precision_));
    }
  }
  /// a x b as numbers of this type: float, or bf16 where factors are.
  Tensor multiply_into(at::ScalarType type, const Tensor& a, const Tensor& b) const {
    return rounds_into(type) ? rounded_product(a, b, {}) : multiply(a, b);
  }
  /// x weight^T + bias, likewise; `bias` may be undefined.
  Tensor linear_into(at::ScalarType type, const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    if (rounds_into(type)) return rounded_product(x, weight.t(), bias);
    return kIsRounded ? bf16_linear(x, weight, bias) : product_with_transposed(x, weight, bias, precision_);
  }
  /// a x b + bias, kRowsPerSum rows at a time; `bias` may be undefined.
  void multiply_rows(const Tensor& a, const Tensor& b, const Tensor& bias, const RowBlockUser& use) const {
    kIsRounded ? bf16_product_by_row_blocks(a, b, bias, kRowsPerSum, use) : product_by_row_blocks(a, b, bias, kRowsPerSum, use, precision_);
  }

 private:
  static bool rounds_into(at::ScalarType type) { return kIsRounded && type == at::kBFloat16; }

  /// a x b + bias in bf16; `bias` may be undefined.
  Tensor rounded_product(const Tensor& a, const Tensor& b, const Tensor& bias) const {
    if (!a.is_cpu()) {
      sum_in_float_on_gpu();
      return bias.defined() ? at::addmm(rounded_to_bf16(bias), a, b) : at::mm(a, b);  // the bias rounded first
    }
    Tensor result = at::empty({a.size(0), b.size(1)}, at::kBFloat16);
    multiply_rows(a, b, bias, [&](const float* rows, int64_t begin, int64_t end) {
      row_kernels<float>().narrow_rows(end - begin, b.size(1), rows, bf16_bits_of(result) + begin * b.size(1), b.size(1));
    });
    return result;
  }

  FactorPrecision precision_;
};

}  // namespace lacuna
