#pragma once

#include <memory>
#include <utility>

#include "base/ragged.h"
#include "kernels/packed_product.h"

namespace lacuna {

/// A weight [N, K] laid out once for many products without gradients. On the CPU, in float, a row of the result has the same bits however
/// many rows there are: what else is in a batch can't change a translation.
class PackedWeight {
 public:
  /// Keeps a copy in the format or, unless the weight is float on the CPU, the weight itself. `kernel`: null = this machine's best.
  /// Throws ConfigError for more inputs than sums of int8 hold (66,311).
  explicit PackedWeight(const Tensor& weight, WeightFormat format = WeightFormat::kFloat, const PackedKernel* kernel = nullptr);
  /// x [T, K] -> end(x weight^T + bias) [T, N]. `bias` may be undefined. `zeros` tells how many numbers of x are 0; it changes the time,
  /// but not the result, unless weights are not finite (a product of these with 0 may be skipped). Throws ShapeError if x does not fit.
  Tensor multiply(const Tensor& x, const Tensor& bias, ProductEnd end = ProductEnd::kNone, RowZeros zeros = RowZeros::kFew) const;
  /// The number of outputs, N.
  int64_t outputs() const { return columns_; }

 private:
  /// Rows as the kernel takes them.
  struct Words {
    Tensor values;  // [rows rounded up, words] int32
    Tensor scales;  // [rows]; bytes only
    Tensor zeros;   // [rows] int32; bytes that are no weight's only
  };
  Words words_of(const Tensor& rows, bool is_weight) const;
  /// NonzeroWords, as {nonzeros, counts}.
  std::pair<Tensor, Tensor> nonzeros_of(const Tensor& rows) const;
  /// Fills in panels_.
  void lay_out(const Tensor& words);
  void run(const PackedProduct& product, int64_t rows) const;

  WeightFormat format_;
  PackedKernel kernel_ = {};
  Tensor weight_;         // as it is, where nothing is packed
  Tensor panels_;         // [ceil(N / panel), words, panel] int32, the last panel filled up with zeros
  Tensor scales_, sums_;  // [N] filled up likewise; bytes only
  int64_t columns_ = 0, depth_ = 0;
};

}  // namespace lacuna
