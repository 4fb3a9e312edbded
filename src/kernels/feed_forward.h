#pragma once

#include "kernels/dropout.h"

namespace lacuna {

/// Of x weight^T + bias: weight [N, K], bias [N].
struct LinearWeights {
  Tensor weight, bias;
};

/// outer(dropout(f(inner(x)))), with gradients; x [T, D] -> [T, D]. f = max(x, 0), or with `is_gelu` x Phi(x).
///
/// With `in_bf16` the factors of all products are rounded to bf16, if they are float: what stands between the products, and its gradient,
/// by the passes that make them.
Tensor feed_forward(const Tensor& x, const LinearWeights& inner, const LinearWeights& outer, bool is_gelu, const Dropout& dropout,
                    bool in_bf16 = false);

}  // namespace lacuna
