#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/packed_product.h"

namespace lacuna {

using at::Tensor;

/// A weight [N, K] as products in kInt8 take it: a row is its bytes times its scale, the largest byte being 127 or -127.
struct QuantizedWeight {
  Tensor bytes;   ///< [N, K] int8
  Tensor scales;  ///< [N] float: largest magnitude of the row / 127
};

/// Of a weight of float on the CPU.
QuantizedWeight quantized(const Tensor& weight);

/// The weight again, [N, K] float: byte * scale, but for 127 and -127, which become the largest number that gives this scale. So rounding
/// it anew gives the same bytes and scales, bit for bit.
Tensor dequantized(const QuantizedWeight& weight);

/// What kBf16 and kInt8 keep of a weight of float on the CPU; the weight itself in formats that keep (nearly) all.
Tensor rounded(const Tensor& weight, WeightFormat format);

}  // namespace lacuna
