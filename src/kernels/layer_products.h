#pragma once

// What the autograd functions of linear layers multiply with. Included by sources that have base/libtorch.h
// precompiled.

#include <type_traits>

#include "kernels/matmul.h"
#include "kernels/residual_norm.h"
#include "kernels/row_tensors.h"

namespace lacuna {

/// Returns float values rounded to bf16, or the copy of a parameter that is kept so.
Tensor rounded_to_bf16(const Tensor& values);

/// Contiguous rows [T, N] in bf16, and their column sums [N] in float.
struct RoundedWithSums {
  Tensor rounded, sums;
};

/// Rounds contiguous rows [T, N] to bf16 (they may be bf16 already) and sums their columns: of a product's gradient,
/// this is what the gradients of its factors and of its bias are computed from.
RoundedWithSums rounded_with_sums(const Tensor& rows);

/// The matrix products of a layer and of its gradients. `Stored` is the type in which their factors are kept for the
/// backward pass: float, or uint16_t for bf16 (as bits), which halves the memory and rounds nothing twice.
template <class Stored>
class LayerProducts {
 public:
  static constexpr bool kIsRounded = std::is_same_v<Stored, uint16_t>;
  static constexpr at::ScalarType kType = kIsRounded ? at::kBFloat16 : at::kFloat;

  explicit LayerProducts(Precision precision) : precision_(precision) {}

  static Tensor factor(const Tensor& x) { return kIsRounded ? rounded_to_bf16(x) : x; }
  /// Returns rows [T, N] as a factor, with their column sums [N] (taken before rounding) if these are wanted.
  static RoundedWithSums factor_with_sums(const Tensor& rows, bool wants_sums) {
    if (!wants_sums) return {factor(rows), {}};
    return kIsRounded ? rounded_with_sums(rows) : RoundedWithSums{rows, rows.sum(0)};
  }
  static Tensor empty(at::IntArrayRef sizes) { return at::empty(sizes, kType); }
  /// Returns the numbers of a tensor of kType; null if it is undefined.
  static Stored* data(const Tensor& numbers) { return numbers.defined() ? static_cast<Stored*>(numbers.mutable_data_ptr()) : nullptr; }

  /// Returns a x b [M, N].
  Tensor multiply(const Tensor& a, const Tensor& b) const { return matmul(a, b, {}, precision_); }
  /// Writes a x b to `result`, or adds it there.
  void multiply_to(const Tensor& result, const Tensor& a, const Tensor& b, bool add) const { matmul_into(result, a, b, add, precision_); }
  /// Returns a x b + bias in `type`: float, or bf16 if factors are; `bias` may be undefined.
  Tensor multiply_into(at::ScalarType type, const Tensor& a, const Tensor& b, const Tensor& bias = {}) const {
    return kIsRounded && type == at::kBFloat16 ? matmul_to_bf16(a, b, bias) : matmul(a, b, bias, precision_);
  }
  /// Returns relu(a x b + bias) as a factor, on a GPU: the product's kernel adds and cuts.
  static Tensor multiply_to_relu(const Tensor& a, const Tensor& b, const Tensor& bias) {
    return at::_addmm_activation(factor(bias), a, b, /*beta=*/1, /*alpha=*/1, /*use_gelu=*/false);
  }
  /// Computes a x b + bias, kRowsPerSum rows at a time; `bias` may be undefined.
  void multiply_rows(const Tensor& a, const Tensor& b, const Tensor& bias, const RowBlockUser& use) const {
    matmul_by_row_blocks(a, b, bias, kRowsPerSum, use, precision_);
  }

 private:
  Precision precision_;
};

/// The rows that a layer multiplies, saved for its backward pass: themselves, or what a norm computed them from, which
/// is saved anyway. A list of kSize tensors.
class RowsToKeep {
 public:
  static constexpr size_t kSize = 4;

  /// Returns the tensors to save for the factor `rows`, and notes the kind of norm in `context`. `source`: what a norm
  /// computed the rows from; null = they are saved themselves.
  static torch::autograd::variable_list of(torch::autograd::AutogradContext& context, const Tensor& rows, const NormSource* source) {
    if (source == nullptr || is_on_gpu(rows) || rows.scalar_type() != source->sum.scalar_type())
      return {rows, Tensor(), Tensor(), Tensor()};
    context.saved_data[kIsRms] = source->norm.is_rms;
    context.saved_data[kEpsilon] = source->norm.given_epsilon;
    return {Tensor(), source->sum, source->norm.gain, source->norm.bias};
  }
  /// Returns the rows, bit for bit, from a list of saved tensors that holds these from index `first` on.
  static Tensor rows(torch::autograd::AutogradContext& context, const torch::autograd::variable_list& kept, size_t first) {
    if (kept[first].defined()) return kept[first];
    const at::NoGradGuard no_gradients;
    const Tensor &sum = kept[first + 1], &gain = kept[first + 2], &bias = kept[first + 3];
    const NormWeights norm = {gain, bias, context.saved_data[kIsRms].toBool(), context.saved_data[kEpsilon].toDouble()};
    return residual_norm({sum, {}, norm}, {}).normed;
  }

 private:
  static constexpr const char *kIsRms = "rows_are_of_rms", *kEpsilon = "epsilon_of_rows";
};

}  // namespace lacuna
