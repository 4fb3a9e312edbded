#pragma once

#include <memory>

#include "base/ragged.h"

namespace lacuna {

/// A weight [N, K] laid out once for many products without gradients. On the CPU, in float, a row of the result has the same bits however
/// many rows there are: what else is in a batch can't change a translation.
class PackedWeight {
 public:
  /// Keeps a packed copy (float on the CPU), or else the weight itself.
  explicit PackedWeight(const Tensor& weight);
  /// x [T, K] -> x weight^T + bias [T, N]. `bias` may be undefined.
  Tensor multiply(const Tensor& x, const Tensor& bias) const;

 private:
  Tensor weight_;  // as it is, where nothing is packed
  Tensor panels_;  // [ceil(N / panel), K, panel], the last panel filled up with zeros
  int64_t columns_ = 0, depth_ = 0;
};

}  // namespace lacuna
