#pragma once

#include <vector>

#include "attention/rows/row_numbers.h"
#include "base/ragged.h"

namespace lacuna {

/// What layers add to the loss of a batch beside its cross-entropy. Attach one to ForwardContext::regularizer for a forward pass.
class Regularizer {
 public:
  /// The number's penalty, where it has one. `queries`: the tokens that a number [Tq, H] belongs to.
  void add(const RowNumber& number, const RaggedShapePtr& queries);
  /// Summed over the target tokens; undefined if there is none. A number of each query enters by its mean over the sentence, so that the
  /// sum over sentences does not depend on how they are batched.
  Tensor sum(const RaggedShape& tgt) const;

 private:
  struct Term {
    Tensor per_token;  // [], or [T] of the tokens of `shape`; double
    RaggedShapePtr shape;
  };
  std::vector<Term> terms_;
};

}  // namespace lacuna
