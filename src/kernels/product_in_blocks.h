#pragma once

#include <functional>
#include <vector>

#include "base/factor_precision.h"
#include "base/profile.h"
#include "base/ragged.h"
#include "kernels/block_product.h"

/// Matrix products by our own loops, of tensors on the CPU, for bf16_product.cpp and linear.cpp.
namespace lacuna {

/// How a matrix is stored: row by row, or column by column as a transposed view is. Throws ShapeError if neither rows nor columns are
/// contiguous.
struct MatrixLayout {
  explicit MatrixLayout(const Tensor& matrix);
  bool by_rows;
  int64_t leading;  ///< numbers from one row (or column) to the next
};

/// An implementation for factors of float; all give the same bits.
struct FloatBlockKernel {
  const char* target;  ///< of the instruction set
  BlockKernel<FloatFactor> kernel;
};
/// Those that this machine can run, best first; the last one needs AVX2 with FMA only.
std::vector<FloatBlockKernel> float_block_kernels();

/// The shape under which a profile lists the product a x b.
ProductShape product_shape(const Tensor& a, const Tensor& b, FactorPrecision precision, bool add = false);

/// By a kernel that this processor has: result [M, N] float = or, with `add`, += a [M, K] x b [K, N], plus `bias` [N] if that is defined
/// (then not `add`). Factors hold what the kernel takes: bf16, or float. No factor is empty; the result's rows are contiguous. ShapeError
/// where sizes do not fit. Bits depend on neither threads nor other rows and columns.
template <class Factor>
void product_in_blocks(const BlockKernel<Factor>& kernel, const Tensor& result, const Tensor& a, const Tensor& b, bool add,
                       const Tensor& bias);

/// Receives rows [begin, end) of a product, contiguous, and may overwrite them.
using RowBlockUser = std::function<void(float* rows, int64_t begin, int64_t end)>;
/// a x b, plus `bias` if that is defined, `block` rows at a time (a multiple of 32), each block for `use` on the thread that made it, while
/// it is in its cache.
template <class Factor>
void product_by_row_blocks(const BlockKernel<Factor>& kernel, const Tensor& a, const Tensor& b, const Tensor& bias, int64_t block,
                           const RowBlockUser& use);

/// Calls `use` with the rows of a product [M, N] that is already computed.
void use_row_blocks(const Tensor& product, int64_t block, const RowBlockUser& use);

}  // namespace lacuna
