#pragma once

#include "base/ragged.h"

namespace lacuna {

/// Which library multiplies matrices of float on the CPU: LibTorch's default (MKL), or oneDNN, which is twice as fast on AMD processors.
enum class MatmulBackend { kDefault, kOneDnn };

/// The one in use: `set_matmul_backend`'s, at first oneDNN on AMD processors and the default elsewhere. Results differ in rounding, so a
/// run that must continue bit for bit keeps the one it began with.
MatmulBackend matmul_backend();
void set_matmul_backend(MatmulBackend backend);
const char* name_of(MatmulBackend backend);

// Products without gradients, by the backend in use.

/// a [M, K] x b [N, K]^T (+ bias [N], may be undefined) -> [M, N]
Tensor product_with_transposed(const Tensor& a, const Tensor& b, const Tensor& bias);
/// a [M, K] x b [K, N] -> [M, N]
Tensor product(const Tensor& a, const Tensor& b);
/// a [K, M]^T x b [K, N] -> [M, N]
Tensor product_of_transposed(const Tensor& a, const Tensor& b);
/// to [M, N] += a [K, M]^T x b [K, N]
void add_product_of_transposed(Tensor& to, const Tensor& a, const Tensor& b);

/// x [T, K] x weight [N, K]^T + bias [N] -> [T, N], with gradients. `bias` may be undefined. With `in_bf16` the factors of the three
/// products (this one and its gradients') are rounded to bf16, if they are float; results and sums are float.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, bool in_bf16 = false);

}  // namespace lacuna
