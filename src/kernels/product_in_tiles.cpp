#include "kernels/product_in_tiles.h"

#include "base/error.h"
#include "kernels/row_tensors.h"
#include "kernels/tiled_product.h"

namespace lacuna {
namespace {

template <class T>
TiledMatrix<T> tiled_matrix(const Tensor& matrix) {
  const MatrixLayout layout(matrix);
  const T* const data = static_cast<const T*>(matrix.const_data_ptr());
  return layout.by_rows ? TiledMatrix<T>{data, layout.leading, 1} : TiledMatrix<T>{data, 1, layout.leading};
}

/// Without memory for panels. Rows of the result lie `row` apart; `bias` may be undefined.
template <class T>
TiledProduct<T> tiled_product(const Tensor& a, const Tensor& b, int64_t row, bool add, const Tensor& bias) {
  return {.rows = a.size(0),
          .columns = b.size(1),
          .depth = a.size(1),
          .a = tiled_matrix<T>(a),
          .b = tiled_matrix<T>(b),
          .c_row = row,
          .add = add,
          .bias = data_of<float>(bias),
          .panels = nullptr};
}

/// The matrix, or a copy if its lines are not contiguous or overlap, as those of an expanded one do.
Tensor with_lines(const Tensor& matrix) {
  const auto has_lines = [&](int64_t along, int64_t across) {
    return (matrix.stride(along) == 1 || matrix.size(along) == 1) &&
           (matrix.stride(across) >= matrix.size(along) || matrix.size(across) == 1);
  };
  return has_lines(1, 0) || has_lines(0, 1) ? matrix : matrix.contiguous();
}

/// Calls f with a number of the type that tiled_product.h takes for these factors.
template <class F>
void with_factor_type(const Tensor& a, const F& f) {
  if (a.scalar_type() == at::kBFloat16) return f(uint16_t());
  f(float());
}

/// Memory of a product for panels.
template <class T>
class Panels {
 public:
  Panels(TiledProduct<T>& product, int64_t words) : memory_(at::empty({words}, at::kInt)) {
    product.panels = reinterpret_cast<uint32_t*>(memory_.mutable_data_ptr<int32_t>());
  }

 private:
  Tensor memory_;
};

/// A product whose right factor is laid out whole, for all threads.
template <class T>
class WideProduct {
 public:
  explicit WideProduct(const TiledProduct<T>& product) : product_(product), panels_(product_, panel_words(product)) {
    const int64_t panels = tiled_blocks(product_.columns);
    for_parts(panels, is_small() ? panels : 1, [&](int64_t begin, int64_t end) { amx::pack_panels(product_, begin, end); });
  }

  /// Rows [begin, end) go to `to`; begin is a multiple of kTiledBlock.
  void multiply(int64_t begin, int64_t end, float* to) const { amx::multiply_rows(product_, begin / kTiledBlock, tiled_blocks(end), to); }
  void multiply_all(float* result) const {
    for_parts(tiled_blocks(product_.rows), blocks_per_task(),
              [&](int64_t begin, int64_t end) { amx::multiply_rows(product_, begin, end, result + begin * kTiledBlock * product_.c_row); });
  }

 private:
  bool is_small() const { return tiled_blocks(product_.rows) <= blocks_per_task(); }
  int64_t blocks_per_task() const {
    constexpr int64_t kWorkPerTask = 1 << 22;  // or waking a thread costs more
    return std::max<int64_t>(1, kWorkPerTask / (kTiledBlock * product_.columns * product_.depth));
  }

  TiledProduct<T> product_;
  Panels<T> panels_;
};

/// A part of a deep product: rows or columns [begin, end).
template <class T>
void multiply_deep_part(TiledProduct<T> part, bool by_rows, int64_t begin, int64_t end, float* result) {
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
  const Panels<T> panels(part, deep_panel_words(part));
  amx::multiply_deep(part, result);
}

/// Each thread takes a share of the rows, or of the columns if there are more of these, and lays out for itself what it needs.
template <class T>
void multiply_deep(const TiledProduct<T>& product, float* result) {
  const bool by_rows = product.rows >= product.columns;
  const int64_t size = by_rows ? product.rows : product.columns, blocks = tiled_blocks(size);
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  at::parallel_for(0, blocks, (blocks + threads - 1) / threads, [&](int64_t begin, int64_t end) {
    multiply_deep_part(product, by_rows, begin * kTiledBlock, std::min(size, end * kTiledBlock), result);
  });
}

}  // namespace

MatrixLayout::MatrixLayout(const Tensor& matrix) : by_rows(matrix.stride(1) == 1 || matrix.size(1) == 1) {
  if (!by_rows && matrix.stride(0) != 1 && matrix.size(0) != 1)
    throw ShapeError("a factor of a matrix product has neither contiguous rows nor contiguous columns");
  leading = std::max(matrix.stride(by_rows ? 0 : 1), matrix.size(by_rows ? 1 : 0));
}

ProductShape product_shape(const Tensor& a, const Tensor& b, FactorPrecision precision, bool add) {
  const auto is_transposed = [](const Tensor& matrix) { return matrix.stride(1) != 1 && matrix.size(1) != 1; };
  return {a.size(0), a.size(1), b.size(1), is_transposed(a), is_transposed(b), precision, add};
}

void product_in_tiles(const Tensor& result, const Tensor& left, const Tensor& right, bool add, const Tensor& bias) {
  const Tensor a = with_lines(left), b = with_lines(right);
  with_factor_type(a, [&](auto t) {
    using T = decltype(t);
    const TiledProduct<T> product = tiled_product<T>(a, b, result.stride(0), add, bias);
    auto* const to = result.mutable_data_ptr<float>();
    const bool is_deep = product.depth > kDepthBlock<uint16_t> && product.depth > product.rows;
    is_deep ? multiply_deep(product, to) : WideProduct<T>(product).multiply_all(to);
  });
}

void product_in_tiles_in_blocks(const Tensor& a, const Tensor& b, int64_t block, const RowBlockUser& use) {
  with_factor_type(a, [&](auto t) {
    const int64_t columns = b.size(1);
    const WideProduct<decltype(t)> product(tiled_product<decltype(t)>(a, b, columns, /*add=*/false, {}));
    for_blocks_of_rows(a.size(0), block, [&](int64_t begin, int64_t end) {
      const Tensor memory = at::empty({block, columns}, at::kFloat);
      auto* const data = memory.mutable_data_ptr<float>();
      product.multiply(begin, end, data);
      use(data, begin, end);
    });
  });
}

}  // namespace lacuna
