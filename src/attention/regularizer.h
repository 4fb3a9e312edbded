#pragma once

#include <vector>

#include "attention/rows/row_numbers.h"
#include "base/ragged.h"

namespace lacuna {

/// Gathers the penalties that layers add to a batch's cross-entropy. Attach one to ForwardContext::regularizer.
class Regularizer {
 public:
  /// Adds the number's penalty, if it has one. `queries`: the tokens that a number [Tq, H] belongs to.
  void add(const RowNumber& number, const RaggedShapePtr& queries);
  /// Returns the penalties summed over the target tokens, or an undefined tensor if there are none. A number of each
  /// query enters by its mean over the sentence: sums over sentences do not depend on how they are batched.
  Tensor sum(const RaggedShape& tgt) const;

 private:
  struct Term {
    Tensor per_token;  // [], or [T] of the tokens of `shape`; double
    RaggedShapePtr shape;
  };
  std::vector<Term> terms_;
};

}  // namespace lacuna
