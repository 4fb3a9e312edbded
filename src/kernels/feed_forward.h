#pragma once

#include "kernels/residual_norm.h"

namespace lacuna {

/// The parameters of a linear layer x weight^T + bias: weight [N, K], bias [N].
struct LinearWeights {
  Tensor weight, bias;
};

// Sub-layers that end in a linear layer, with gradients: the residual connection and the norm are applied to each block of rows of its
// product while the block is in the cache. `precision` is that of the factors of all products, if x is float. With kBf16, x may be bf16
// already; then so is its gradient.

/// residual_norm of x weight^T + bias.
ResidualNorm linear_to_residual(const Tensor& x, const LinearWeights& weights, const ResidualEnd& end,
                                FactorPrecision precision = FactorPrecision::kFp32);

/// residual_norm of outer(dropout(f(inner(x)))). f = max(x, 0), or with `is_gelu` x Phi(x).
///
/// `source`: what x was normalised from, null = not known. The activation and its gradient are computed on blocks of rows of the products,
/// and with kBf16 rounded there.
ResidualNorm feed_forward(const Tensor& x, const LinearWeights& inner, const LinearWeights& outer, bool is_gelu, const Dropout& dropout,
                          const ResidualEnd& end, FactorPrecision precision = FactorPrecision::kFp32, const NormSource* source = nullptr);

}  // namespace lacuna
