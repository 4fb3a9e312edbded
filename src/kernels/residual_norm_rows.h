#pragma once

// Residual connection and norm for autograd functions that end in them and compute their output a block of rows at a
// time. Included by sources that have base/libtorch.h precompiled.

#include "kernels/residual_norm.h"
#include "kernels/row_tensors.h"

namespace lacuna {

/// Calls f(kernels, a number of the normed rows' type, one of the type of the output's gradient); each type is T or, if
/// rounded, bf16 bits.
template <class T, class F>
auto with_residual_norm_kernels(bool normed_is_rounded, bool output_is_rounded, const F& f) {
  const RowKernels<T>& kernels = row_kernels<T>();
  if (normed_is_rounded && output_is_rounded) return f(kernels.residual_norm_in_bf16, uint16_t(), uint16_t());
  if (normed_is_rounded) return f(kernels.residual_norm_to_bf16, uint16_t(), T());
  return output_is_rounded ? f(kernels.residual_norm_of_bf16, T(), uint16_t()) : f(kernels.residual_norm, T(), T());
}

/// The forward pass.
class ResidualNormRows {
 public:
  /// `has_output`: false = only the norm of the residual. `for_backward`: what the backward pass reads is kept.
  ResidualNormRows(const ResidualEnd& end, bool has_output, bool for_backward);

  /// Processes rows [begin, end) of the output, the first of which is at `output` (null = there is no output). T is the
  /// residual's type.
  template <class T>
  void take(const T* output, int64_t begin, int64_t end) const {
    with_residual_norm_kernels<T>(is_rounded(), false, [&](const auto& kernels, auto normed, auto) {
      kernels.forward(arguments<T, decltype(normed), T>(output, begin), begin, end);
    });
  }
  /// Processes all rows, on a GPU. `output` is float or bf16, and may be undefined.
  void take_on_gpu(const Tensor& output) const;

  /// The sum is the residual itself where there is no output.
  ResidualNorm result() const { return {sum_, normed_}; }
  /// Returns the kKept tensors that the backward pass reads.
  torch::autograd::variable_list kept() const { return {sum_, mean_, inverse_deviation_, end_.norm.gain}; }
  static constexpr size_t kKept = 4;

 private:
  bool is_rounded() const { return normed_.scalar_type() == at::kBFloat16; }

  template <class T, class Normed, class Output>
  ResidualNormForward<T, Normed, Output> arguments(const Output* output, int64_t first_row) const {
    return {.columns = end_.residual.size(1),
            .residual = data_of<T>(end_.residual),
            .output = output,
            .first_row = first_row,
            .dropout = dropout_,
            .is_rms = end_.norm.is_rms,
            .gain = data_of<T>(end_.norm.gain),
            .bias = data_of<T>(end_.norm.bias),
            .epsilon = static_cast<T>(end_.norm.epsilon()),
            .sum = output == nullptr ? nullptr : mutable_data_of<T>(sum_),
            .normed = static_cast<Normed*>(normed_.mutable_data_ptr()),
            .mean = mutable_data_of<T>(mean_),
            .inverse_deviation = mutable_data_of<T>(inverse_deviation_)};
  }

  const ResidualEnd& end_;
  DropoutRows dropout_;
  Tensor sum_, normed_, mean_, inverse_deviation_;
};

/// The input of a backward pass.
struct ResidualNormBackwardInputs {
  torch::autograd::variable_list kept;   ///< ResidualNormRows::kept()
  Tensor sum_gradient, normed_gradient;  ///< may be undefined: zero
  Dropout dropout;
  bool is_rms;
};

/// The wanted form of the output's gradient.
struct OutputGradient {
  bool is_wanted = true;
  bool is_rounded = false;  ///< to bf16
  bool wants_sums = false;
};

struct ResidualNormGradients {
  Tensor residual;     ///< [T, D]
  Tensor output;       ///< [T, D]
  Tensor output_sums;  ///< [D]: those of its columns, before it is rounded
  Tensor gain, bias;   ///< [D]; the bias's undefined for RMSNorm
};

/// Computes all gradients.
ResidualNormGradients residual_norm_gradients(const ResidualNormBackwardInputs& inputs, const OutputGradient& output);

}  // namespace lacuna
