#include "kernels/product_in_blocks.h"

#include "base/error.h"
#include "kernels/cpu_target.h"
#include "kernels/parallel.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

template <class Number>
StridedMatrix<Number> strided_matrix(const Tensor& matrix) {
  const MatrixLayout layout(matrix);
  const auto* const data = static_cast<const Number*>(matrix.const_data_ptr());
  return layout.by_rows ? StridedMatrix<Number>{data, layout.leading, 1} : StridedMatrix<Number>{data, 1, layout.leading};
}

/// Describes a product, without memory for panels. Rows of the result lie `row` apart; `bias` may be undefined.
template <class Factor>
BlockProduct<Factor> block_product(const Tensor& a, const Tensor& b, int64_t row, bool add, const Tensor& bias) {
  return {.rows = a.size(0),
          .columns = b.size(1),
          .depth = a.size(1),
          .a = strided_matrix<typename Factor::Number>(a),
          .b = strided_matrix<typename Factor::Number>(b),
          .c_row = row,
          .add = add,
          .bias = data_of<float>(bias),
          .panels = nullptr};
}

void check_sizes(const Tensor& a, const Tensor& b, const Tensor& bias) {
  if (a.dim() != 2 || b.dim() != 2 || a.size(1) != b.size(0)) throw ShapeError("factors of a matrix product do not fit each other");
  if (bias.defined() && !(bias.is_contiguous() && bias.numel() == b.size(1)))
    throw ShapeError("the bias of a matrix product does not have one number for each column");
}

/// The matrix, or a copy if its lines are not contiguous or overlap, as those of an expanded one do.
Tensor with_lines(const Tensor& matrix) {
  const auto has_lines = [&](int64_t along, int64_t across) {
    return (matrix.stride(along) == 1 || matrix.size(along) == 1) &&
           (matrix.stride(across) >= matrix.size(along) || matrix.size(across) == 1);
  };
  return has_lines(1, 0) || has_lines(0, 1) ? matrix : matrix.contiguous();
}

/// Memory of a product for panels.
template <class Factor>
class Panels {
 public:
  Panels(BlockProduct<Factor>& product, int64_t words) : memory_(at::empty({words}, at::kInt)) {
    product.panels = reinterpret_cast<uint32_t*>(memory_.mutable_data_ptr<int32_t>());
  }

 private:
  Tensor memory_;
};

/// A product whose right factor is laid out whole, for all threads.
template <class Factor>
class WideProduct {
 public:
  WideProduct(const BlockKernel<Factor>& kernel, const BlockProduct<Factor>& product)
      : kernel_(kernel), product_(product), panels_(product_, panel_words(product)) {
    const int64_t panels = blocks_in(product_.columns);
    for_parts(panels, is_small() ? panels : 1, [&](int64_t begin, int64_t end) { kernel_.pack_panels(product_, begin, end); });
  }

  /// Rows [begin, end) go to `to`; begin is a multiple of kBlock.
  void multiply(int64_t begin, int64_t end, float* to) const { kernel_.multiply_rows(product_, begin / kBlock, blocks_in(end), to); }
  void multiply_all(float* result) const {
    for_parts(blocks_in(product_.rows), blocks_per_task(),
              [&](int64_t begin, int64_t end) { kernel_.multiply_rows(product_, begin, end, result + begin * kBlock * product_.c_row); });
  }

 private:
  bool is_small() const { return blocks_in(product_.rows) <= blocks_per_task(); }
  int64_t blocks_per_task() const {
    constexpr int64_t kWorkPerTask = 1 << 22;  // or waking a thread costs more
    return std::max<int64_t>(1, kWorkPerTask / (kBlock * product_.columns * product_.depth));
  }

  BlockKernel<Factor> kernel_;
  BlockProduct<Factor> product_;
  Panels<Factor> panels_;
};

/// Calls f(begin, end) for parts of so many rows, on all threads; each begins with a block.
template <class F>
void for_parts_of_blocks(int64_t rows, int64_t block, const F& f) {
  for_parts((rows + block - 1) / block, 1, [&](int64_t begin, int64_t end) { f(begin * block, std::min(rows, end * block)); });
}

/// A part of a deep product: rows or columns [begin, end).
template <class Factor>
void multiply_deep_part(const BlockKernel<Factor>& kernel, BlockProduct<Factor> part, bool by_rows, int64_t begin, int64_t end,
                        float* result) {
  if (by_rows) {
    part.a.data += begin * part.a.row;
    part.rows = end - begin;
    result += begin * part.c_row;
  } else {
    part.b.data += begin * part.b.column;
    part.columns = end - begin;
    result += begin;
    if (part.bias != nullptr) part.bias += begin;
  }
  const Panels<Factor> panels(part, deep_panel_words(part));
  kernel.multiply_deep(part, result);
}

/// Each thread takes a share of the rows, or of the columns if there are more of these, and lays out for itself what it
/// needs.
template <class Factor>
void multiply_deep(const BlockKernel<Factor>& kernel, const BlockProduct<Factor>& product, float* result) {
  const bool by_rows = product.rows >= product.columns;
  const int64_t size = by_rows ? product.rows : product.columns, blocks = blocks_in(size);
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  at::parallel_for(0, blocks, (blocks + threads - 1) / threads, [&](int64_t begin, int64_t end) {
    multiply_deep_part(kernel, product, by_rows, begin * kBlock, std::min(size, end * kBlock), result);
  });
}

}  // namespace

MatrixLayout::MatrixLayout(const Tensor& matrix) : by_rows(matrix.stride(1) == 1 || matrix.size(1) == 1) {
  if (!by_rows && matrix.stride(0) != 1 && matrix.size(0) != 1)
    throw ShapeError("a factor of a matrix product has neither contiguous rows nor contiguous columns");
  leading = std::max(matrix.stride(by_rows ? 0 : 1), matrix.size(by_rows ? 1 : 0));
}

std::vector<FloatBlockKernel> float_block_kernels() {
  std::vector<FloatBlockKernel> kernels;
  if (cpu_has(CpuTarget::kAvx512)) kernels.push_back({CpuTarget::kAvx512, avx512::kFloatBlocks});
  kernels.push_back({CpuTarget::kAvx2, avx2::kFloatBlocks});
  return kernels;
}

ProductShape product_shape(const Tensor& a, const Tensor& b, Precision precision, bool add) {
  const auto is_transposed = [](const Tensor& matrix) { return matrix.stride(1) != 1 && matrix.size(1) != 1; };
  return {a.size(0), a.size(1), b.size(1), is_transposed(a), is_transposed(b), precision, add};
}

template <class Factor>
void product_in_blocks(const BlockKernel<Factor>& kernel, const Tensor& result, const Tensor& left, const Tensor& right, bool add,
                       const Tensor& bias) {
  check_sizes(left, right, bias);
  if (result.dim() != 2 || result.size(0) != left.size(0) || result.size(1) != right.size(1) ||
      (result.stride(1) != 1 && result.size(1) != 1))
    throw ShapeError("the result of a matrix product does not have the sizes of its factors, or contiguous rows");
  constexpr int64_t kDeep = 512;
  const Tensor a = with_lines(left), b = with_lines(right);
  const BlockProduct<Factor> product = block_product<Factor>(a, b, result.stride(0), add, bias);
  auto* const to = result.mutable_data_ptr<float>();
  const bool is_deep = product.depth > kDeep && product.depth > product.rows;
  is_deep ? multiply_deep(kernel, product, to) : WideProduct<Factor>(kernel, product).multiply_all(to);
}

template <class Factor>
void product_by_row_blocks(const BlockKernel<Factor>& kernel, const Tensor& left, const Tensor& right, const Tensor& bias, int64_t block,
                           const RowBlockUser& use) {
  check_sizes(left, right, bias);
  const Tensor a = with_lines(left), b = with_lines(right);
  const int64_t columns = b.size(1);
  const WideProduct<Factor> product(kernel, block_product<Factor>(a, b, columns, /*add=*/false, bias));
  for_parts_of_blocks(a.size(0), block, [&](int64_t first, int64_t last) {
    const Tensor memory = at::empty({block, columns}, at::kFloat);
    auto* const rows = memory.mutable_data_ptr<float>();
    for (int64_t begin = first; begin < last; begin += block) {
      const int64_t end = std::min(last, begin + block);
      product.multiply(begin, end, rows);
      use(rows, begin, end);
    }
  });
}

void use_row_blocks(const Tensor& product, int64_t block, const RowBlockUser& use) {
  auto* const data = product.mutable_data_ptr<float>();
  for_parts_of_blocks(product.size(0), block, [&](int64_t first, int64_t last) {
    for (int64_t begin = first; begin < last; begin += block) use(data + begin * product.size(1), begin, std::min(last, begin + block));
  });
}

template void product_in_blocks(const BlockKernel<Bf16Factor>&, const Tensor&, const Tensor&, const Tensor&, bool, const Tensor&);
template void product_in_blocks(const BlockKernel<Bf16x3Factor>&, const Tensor&, const Tensor&, const Tensor&, bool, const Tensor&);
template void product_in_blocks(const BlockKernel<FloatFactor>&, const Tensor&, const Tensor&, const Tensor&, bool, const Tensor&);
template void product_by_row_blocks(const BlockKernel<Bf16x3Factor>&, const Tensor&, const Tensor&, const Tensor&, int64_t,
                                    const RowBlockUser&);
template void product_by_row_blocks(const BlockKernel<FloatFactor>&, const Tensor&, const Tensor&, const Tensor&, int64_t,
                                    const RowBlockUser&);
template void product_by_row_blocks(const BlockKernel<Bf16Factor>&, const Tensor&, const Tensor&, const Tensor&, int64_t,
                                    const RowBlockUser&);

}  // namespace lacuna
