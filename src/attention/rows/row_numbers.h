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

/// One of them: [H], the same for all queries, or [Tq, H].
struct RowNumber {
  std::string name;  ///< as the log calls it
  Tensor values;
  double penalty = 0;  ///< times the mean over heads (and over queries, where each has its own) is added to the loss of each token
};

/// Makes them from parameters: a type that learns holds one of these in its own file and gives it out by Options::make_numbers.
class RowNumbers : public torch::nn::Module {
 public:
  /// x [Tq, D]: the layer's input, of which queries are made, in any type of number. In the order in which the type's row map reads them;
  /// with gradients. Without gradients, a row of the result has the same bits whatever else is in the batch.
  virtual std::vector<RowNumber> forward(const Tensor& x) = 0;
  /// Of parameters that updates must not lead out of their range.
  virtual std::vector<ParameterRange> ranges() const { return {}; }
};

/// The module of a type with its options, or null if rows of this type take no numbers.
std::shared_ptr<RowNumbers> make_row_numbers(const AttentionType& type, int64_t num_heads, int64_t d_model);

}  // namespace lacuna
