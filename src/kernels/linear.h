#pragma once

#include <vector>

#include "base/factor_precision.h"
#include "base/ragged.h"
#include "kernels/product_in_blocks.h"

namespace lacuna {

/// What multiplies matrices of float on the CPU: LibTorch's default (MKL, where it is), oneDNN, or our own loops (product_in_blocks.h).
enum class MatmulBackend { kDefault, kOneDnn, kBlocks };
/// The backends that this machine has, best first: on AMD processors our own before oneDNN before MKL, which is slow there; elsewhere MKL.
std::vector<MatmulBackend> matmul_backends();

/// The backend in use: the best, unless `set_matmul_backend` chose another. Results differ in rounding, so a run that must continue bit for
/// bit keeps the one it began with.
MatmulBackend matmul_backend();
void set_matmul_backend(MatmulBackend backend);
const char* name_of(MatmulBackend backend);

// Products of float without gradients, by the backend in use; with kBf16x3 in tiles instead, where the processor has them.

/// a [M, K] x b [N, K]^T (+ bias [N], may be undefined) -> [M, N]
Tensor product_with_transposed(const Tensor& a, const Tensor& b, const Tensor& bias, FactorPrecision precision = FactorPrecision::kFp32);
/// a [M, K] x b [K, N] -> [M, N]
Tensor product(const Tensor& a, const Tensor& b, FactorPrecision precision = FactorPrecision::kFp32);
/// a [K, M]^T x b [K, N] -> [M, N]
Tensor product_of_transposed(const Tensor& a, const Tensor& b, FactorPrecision precision = FactorPrecision::kFp32);
/// to [M, N] += a [K, M]^T x b [K, N]
void add_product_of_transposed(Tensor& to, const Tensor& a, const Tensor& b, FactorPrecision precision = FactorPrecision::kFp32);

/// a [M, K] x b [K, N] (+ bias [N], may be undefined) of float on the CPU, `block` rows at a time (a multiple of 32), each block for `use`
/// on the thread that made it, where our own loops multiply while it is in its cache. A profile counts the time of `use` as the product's.
void product_by_row_blocks(const Tensor& a, const Tensor& b, const Tensor& bias, int64_t block, const RowBlockUser& use,
                           FactorPrecision precision);

/// x [T, K] x weight [N, K]^T + bias [N] -> [T, N], with gradients. `bias` may be undefined. `precision` is that of the three products
/// (this one and its gradients'), if their factors are float. With kBf16 x may be rounded already: then its gradient is, too; and with
/// `is_rounded` the result is. `source` is what x was made of, null = not known.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, FactorPrecision precision = FactorPrecision::kFp32,
              bool is_rounded = false, const NormSource* source = nullptr);

}  // namespace lacuna
