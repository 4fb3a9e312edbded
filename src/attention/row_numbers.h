#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

/// The learned numbers that an attention type may take for each row (entmax's alpha).
namespace lacuna {

using at::Tensor;
class AttentionType;

/// One of them: [H], the same for all queries, or [Tq, H].
struct RowNumber {
  std::string name;  ///< as the log calls it
  Tensor values;
};

/// Makes them from parameters: a type that learns holds one of these in its own file and gives it out by Options::make_numbers.
class RowNumbers : public torch::nn::Module {
 public:
  /// In the order in which the type's row map reads them; with gradients.
  virtual std::vector<RowNumber> forward() = 0;
};

/// The module of a type with its options, or null if rows of this type take no numbers.
std::shared_ptr<RowNumbers> make_row_numbers(const AttentionType& type, int64_t num_heads);

}  // namespace lacuna
