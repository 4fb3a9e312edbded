#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "base/parameter_range.h"

/// The learned numbers that an attention type may take for each row (entmax's alpha).
namespace lacuna {

using at::Tensor;
class AttentionType;

/// A learned number that rows take: values [H], the same for all queries, or [Tq, H].
struct RowNumber {
  std::string name;  ///< as the log calls it
  Tensor values;
  double penalty = 0;  ///< this times the mean over heads (and queries, where each has its own value) is added to the loss of each token
};

/// The module that computes a layer's RowNumber values from parameters. A type that learns has one in its own file,
/// made by Options::make_numbers.
class RowNumbers : public torch::nn::Module {
 public:
  /// Returns the numbers in the order in which the type's row map reads them, with gradients, from x [Tq, D], the
  /// layer's input of any number type. Without gradients, a row's bits do not depend on what else is in the batch.
  virtual std::vector<RowNumber> forward(const Tensor& x) = 0;
  /// Returns the ranges of parameters that an update clamps.
  virtual std::vector<ParameterRange> ranges() const { return {}; }
};

/// Returns the module of a type with its options, or null if rows of this type take no numbers.
std::shared_ptr<RowNumbers> make_row_numbers(const AttentionType& type, int64_t num_heads, int64_t d_model);

}  // namespace lacuna
