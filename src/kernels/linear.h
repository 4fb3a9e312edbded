#pragma once

#include "base/precision.h"
#include "base/ragged.h"
#include "kernels/residual_norm.h"

namespace lacuna {

/// Returns x [T, K] x weight [N, K]^T + bias [N] -> [T, N], with gradients. `bias` may be undefined.
///
/// `precision` is that of this product and of its gradients' two, if the weight is float. With kBf16, x may be bf16
/// already (then its gradient is, too), and with `is_rounded` the result is bf16. `source` is what a norm computed x
/// from, so that the backward pass can compute x again; null = x is kept.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Precision precision = Precision::kFp32, bool is_rounded = false,
              const NormSource* source = nullptr);

}  // namespace lacuna
