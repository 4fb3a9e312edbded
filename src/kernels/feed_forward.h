#pragma once

#include "base/factor_precision.h"
#include "kernels/dropout.h"

namespace lacuna {

/// Of x weight^T + bias: weight [N, K], bias [N].
struct LinearWeights {
  Tensor weight, bias;
};

/// outer(dropout(f(inner(x)))), with gradients; x [T, D] -> [T, D]. f = max(x, 0), or with `is_gelu` x Phi(x).
///
/// `precision` is that of all products' factors, if they are float. What stands between the products, and its gradient, is worked out on
/// blocks of rows of these, and with kBf16 rounded there.
Tensor feed_forward(const Tensor& x, const LinearWeights& inner, const LinearWeights& outer, bool is_gelu, const Dropout& dropout,
                    FactorPrecision precision = FactorPrecision::kFp32);

}  // namespace lacuna
