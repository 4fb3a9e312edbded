#pragma once

#include <functional>
#include <vector>

#include "base/precision.h"
#include "base/ragged.h"
#include "kernels/block_product.h"
#include "kernels/cpu_target.h"
#include "kernels/profile.h"

/// Matrix products of tensors on the CPU by our own loops, which pack both factors in blocks. matmul.h chooses between
/// them and LibTorch.
namespace lacuna {

/// The layout of a matrix in memory: row by row, or column by column as a transposed view is. Throws ShapeError if
/// neither rows nor columns are contiguous.
struct MatrixLayout {
  explicit MatrixLayout(const Tensor& matrix);
  bool by_rows;
  int64_t leading;  ///< numbers from one row (or column) to the next
};

/// A kernel for factors of float. All of them give the same bits.
struct FloatBlockKernel {
  CpuTarget target;
  BlockKernel<FloatFactor> kernel;
};
/// Returns the kernels that this machine can run, the fastest first; the last one needs AVX2 only.
std::vector<FloatBlockKernel> float_block_kernels();

/// Returns the shape under which a profile lists the product a x b.
ProductShape product_shape(const Tensor& a, const Tensor& b, Precision precision, bool add = false);

/// Sets result [M, N] (float, rows contiguous) to a [M, K] x b [K, N] + bias [N], or with `add` adds a x b to it. `bias`
/// may be undefined, and is with `add`. Factors hold what the kernel takes, bf16 or float, and are not empty. Throws
/// ShapeError where sizes do not fit. Bits depend on neither threads nor other rows and columns.
template <class Factor>
void product_in_blocks(const BlockKernel<Factor>& kernel, const Tensor& result, const Tensor& a, const Tensor& b, bool add,
                       const Tensor& bias);

/// Receives rows [begin, end) of a product, contiguous, and may overwrite them.
using RowBlockUser = std::function<void(float* rows, int64_t begin, int64_t end)>;
/// Computes a x b + bias (may be undefined), `block` rows at a time (a multiple of 32), and hands each block to `use`
/// on the thread that computed it, while it is in that core's cache.
template <class Factor>
void product_by_row_blocks(const BlockKernel<Factor>& kernel, const Tensor& a, const Tensor& b, const Tensor& bias, int64_t block,
                           const RowBlockUser& use);

/// Calls `use` with the rows of a product [M, N] that is already computed.
void use_row_blocks(const Tensor& product, int64_t block, const RowBlockUser& use);

}  // namespace lacuna
