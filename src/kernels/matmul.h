#pragma once

#include <string>
#include <vector>

#include "base/precision.h"
#include "base/ragged.h"
#include "kernels/cpu_target.h"
#include "kernels/product_in_blocks.h"

/// Matrix products of training: both factors are used once. Which loops multiply is decided here, in one place
/// (src/kernels/README.md).
///
/// Factors are all of one type: float, double or bf16, contiguous by rows or by columns (a transposed view will do).
/// Products of bf16 are summed and returned in float, others in their own type. With Precision::kBf16x3, float factors
/// on a CPU with AMX are multiplied in tiles; elsewhere, and for other types, the precision changes nothing.
namespace lacuna {

/// The loops that multiply float factors on the CPU: LibTorch's (MKL, where LibTorch has it), or our own
/// (kernels/product_in_blocks.h).
enum class MatmulBackend { kLibTorch, kBlocks };

/// Returns the backends, the faster one first: our own on AMD processors, where MKL is slow, LibTorch's elsewhere.
std::vector<MatmulBackend> matmul_backends();

/// Returns the backend in use: the faster one unless `set_matmul_backend` chose another. Results differ in rounding, so
/// a run that must resume bit for bit keeps the backend it began with.
MatmulBackend matmul_backend();
void set_matmul_backend(MatmulBackend backend);

/// Returns `default` (LibTorch's) or `blocks`.
const char* name_of(MatmulBackend backend);

/// Returns the targets by which this CPU multiplies bf16 factors, the fastest first: kAmx (tiles), kAvx512Bf16
/// (vectors), and kAvx2, which stands for factors widened to float.
std::vector<CpuTarget> bf16_targets();

/// Returns a [M, K] x b [K, N] + bias [N]; `bias` is undefined where nothing is added.
Tensor matmul(const Tensor& a, const Tensor& b, const Tensor& bias = {}, Precision precision = Precision::kFp32);

/// Writes a [M, K] x b [K, N] to `result` [M, N], whose rows are contiguous, or adds it there.
void matmul_into(const Tensor& result, const Tensor& a, const Tensor& b, bool add, Precision precision = Precision::kFp32);

/// Returns the product of bf16 factors, a [M, K] x b [K, N] + bias [N] (float, may be undefined), rounded to bf16.
Tensor matmul_to_bf16(const Tensor& a, const Tensor& b, const Tensor& bias);

/// Computes a [M, K] x b [K, N] + bias [N] (may be undefined) of float or bf16 on the CPU, `block` rows at a time (a
/// multiple of 32). Our own loops hand each block to `use` on the thread that computed it, while it is in that core's
/// cache. A profile counts the time of `use` as the product's.
void matmul_by_row_blocks(const Tensor& a, const Tensor& b, const Tensor& bias, int64_t block, const RowBlockUser& use,
                          Precision precision);

}  // namespace lacuna
