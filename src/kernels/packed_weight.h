#pragma once

#include <memory>

#include "base/ragged.h"
#include "kernels/packed_product.h"

namespace lacuna {

/// A weight [N, K] that is packed once for many products without gradients. On the CPU, a row of the result has the
/// same bits however many rows there are: the rest of a batch does not change a translation.
class PackedWeight {
 public:
  /// Keeps a packed copy rounded to `precision` or, unless the weight is float on the CPU, the weight itself; of a GPU's
  /// weight, kBf16 keeps a copy in bf16, and one of `bias`, which may be undefined. `kernel`: null = the fastest. Throws ConfigError for
  /// more inputs than sums of int8 hold (66,311).
  explicit PackedWeight(const Tensor& weight, Precision precision = Precision::kFp32, const PackedKernel* kernel = nullptr,
                        const Tensor& bias = {});
  /// Returns end(x weight^T + bias) [T, N] for x [T, K]. `bias` may be undefined. `zeros` tells how many numbers of x
  /// are 0; it changes the time, but not the result, unless weights are not finite (a product of these with 0 may be
  /// skipped). Where a GPU's weight is kept in bf16, x may be bf16, and with `is_rounded` the result is. Throws ShapeError if x does not
  /// fit.
  Tensor multiply(const Tensor& x, const Tensor& bias, ProductEnd end = ProductEnd::kNone, RowZeros zeros = RowZeros::kFew,
                  bool is_rounded = false) const;
  /// Writes that product of x [rows, K], contiguous, to y [rows, N]. `bias` may be null. Needs a packed copy; works in
  /// memory that the thread keeps.
  void multiply(const float* x, int64_t rows, const float* bias, float* y, ProductEnd end = ProductEnd::kNone,
                RowZeros zeros = RowZeros::kFew) const;
  /// Returns the number of inputs, K, and of outputs, N.
  int64_t inputs() const { return depth_; }
  int64_t outputs() const { return columns_; }
  /// Returns false where the weight itself is kept.
  bool is_copy() const { return !weight_.defined(); }
  /// Returns true where rows of products may be bf16.
  bool takes_bf16() const { return weight_.defined() && weight_.scalar_type() == at::kBFloat16; }

 private:
  struct WordMemory;
  /// Rows in the kernel's format.
  struct Words {
    const void* values;    // [rows rounded up, words]
    const float* scales;   // [rows]; bytes only
    const int32_t* zeros;  // [rows]; bytes that are no weight's only
  };
  Tensor plain_product(const Tensor& x, const Tensor& bias, ProductEnd end, bool is_rounded) const;
  Words words_of(const float* rows, int64_t count, bool is_weight, WordMemory& memory) const;
  /// Fills in panels_.
  void lay_out(const int32_t* words);
  void take_scales(int8_t* bytes, const float* scales);
  void run(const PackedProduct& product, int64_t rows) const;

  Precision precision_;
  PackedKernel kernel_ = {};
  Tensor weight_;         // unchanged or in bf16, where nothing is packed
  Tensor rounded_bias_;   // in bf16, beside such a weight; undefined = none
  Tensor panels_;         // [ceil(N / panel), words, panel] int32, the last panel filled up with zeros
  Tensor scales_, sums_;  // [N] filled up likewise; bytes only
  int64_t columns_ = 0, depth_ = 0, words_ = 0;
};

/// A weight [N, K] in int8: a row is its bytes times its scale, the largest byte being 127 or -127. It is the form of
/// weights in files and of rounded embeddings; products in int8 go through PackedWeight, which packs float weights with
/// the same bytes and scales.
struct QuantizedWeight {
  Tensor bytes;   ///< [N, K] int8
  Tensor scales;  ///< [N] float: largest magnitude of the row / 127
};

/// Quantizes a weight of float on the CPU.
QuantizedWeight quantized(const Tensor& weight);

/// Returns the weight [N, K] in float: byte * scale, but for 127 and -127, which become the largest number that gives
/// this scale. So quantizing it again gives the same bytes and scales, bit for bit.
Tensor dequantized(const QuantizedWeight& weight);

/// Returns a weight of float on the CPU rounded to bf16 or int8 and back; for other precisions, the weight itself.
Tensor rounded(const Tensor& weight, Precision precision);

}  // namespace lacuna
