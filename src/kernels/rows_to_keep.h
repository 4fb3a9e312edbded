#pragma once

// The rows that an autograd function multiplies and its backward pass reads again. Included by sources that have base/libtorch.h
// precompiled.

#include "kernels/residual_norm.h"

namespace lacuna {

/// As kSize tensors to save: the rows, or where it is known what a norm made them of, and this is kept anyway, that.
class RowsToKeep {
 public:
  static constexpr size_t kSize = 4;

  /// Of `rows` as a product's factor. `source` null = not known. Notes in `context` which norm it was.
  static torch::autograd::variable_list of(torch::autograd::AutogradContext& context, const Tensor& rows, const NormSource* source) {
    if (source == nullptr || !rows.is_cpu() || rows.scalar_type() != source->sum.scalar_type()) return {rows, Tensor(), Tensor(), Tensor()};
    context.saved_data[kIsRms] = source->norm.is_rms;
    return {Tensor(), source->sum, source->norm.gain, source->norm.bias};
  }
  /// The rows, from the list whose element `first` is the first of these tensors: the same bits.
  static Tensor rows(torch::autograd::AutogradContext& context, const torch::autograd::variable_list& kept, size_t first) {
    if (kept[first].defined()) return kept[first];
    const at::NoGradGuard no_gradients;
    const Tensor &sum = kept[first + 1], &gain = kept[first + 2], &bias = kept[first + 3];
    return residual_norm({sum, {}, {gain, bias, context.saved_data[kIsRms].toBool()}}, {}).normed;
  }

 private:
  static constexpr const char* kIsRms = "rows_are_of_rms";
};

}  // namespace lacuna
