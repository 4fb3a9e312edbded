#pragma once

#include "kernels/residual_norm.h"

namespace lacuna {

/// Of x weight^T + bias: weight [N, K], bias [N].
struct LinearWeights {
  Tensor weight, bias;
};

// Sub-layers that end in a linear layer, with gradients: its product goes a block of rows at a time, while these are in the cache, through
// the residual connection and the norm. `precision` is that of all products' factors, if they are float; with kBf16 x may be rounded
// already: then its gradient is, too.

/// residual_norm of x weight^T + bias.
ResidualNorm linear_to_residual(const Tensor& x, const LinearWeights& weights, const ResidualEnd& end,
                                FactorPrecision precision = FactorPrecision::kFp32);

/// residual_norm of outer(dropout(f(inner(x)))). f = max(x, 0), or with `is_gelu` x Phi(x).
///
/// `source` is what x was made of, null = not known. What stands between the products, and its gradient, is worked out on blocks of rows of
/// these, and with kBf16 rounded there.
ResidualNorm feed_forward(const Tensor& x, const LinearWeights& inner, const LinearWeights& outer, bool is_gelu, const Dropout& dropout,
                          const ResidualEnd& end, FactorPrecision precision = FactorPrecision::kFp32, const NormSource* source = nullptr);

}  // namespace lacuna
