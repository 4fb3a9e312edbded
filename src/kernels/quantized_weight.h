#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/packed_product.h"

namespace lacuna {

using at::Tensor;

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
