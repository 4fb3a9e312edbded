#include "kernels/bf16_product.h"

#include <ATen/record_function.h>
#include <dlfcn.h>

#include <algorithm>

#include "base/error.h"
#include "base/profile.h"
#include "kernels/cpu_features.h"
#include "kernels/packed_product.h"
#include "kernels/parallel.h"
#include "kernels/row_tensors.h"
#include "kernels/tiled_product.h"

namespace lacuna {
namespace {

/// MKL's product of bf16 matrices with a result of float: MKL is a part of most LibTorches, and not declared by its headers.
using Gemm = void (*)(int layout, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const void* a, int lda, const void* b,
                      int ldb, float beta, float* c, int ldc);
constexpr int kRowMajor = 101, kNotTransposed = 111, kTransposed = 112;

/// Null where MKL is not, and on processors of AMD, where it does not use the bf16 instructions.
Gemm mkl_gemm() {
  static const auto gemm = __builtin_cpu_is("amd") ? nullptr : reinterpret_cast<Gemm>(dlsym(RTLD_DEFAULT, "cblas_gemm_bf16bf16f32"));
  return gemm;
}

/// A matrix as BLAS takes it: by rows, or as the transpose of one by rows.
struct Layout {
  explicit Layout(const Tensor& matrix) {
    const bool by_rows = matrix.stride(1) == 1 || matrix.size(1) == 1;
    if (!by_rows && matrix.stride(0) != 1 && matrix.size(0) != 1) throw ShapeError("bf16_product: neither rows nor columns are contiguous");
    transpose = by_rows ? kNotTransposed : kTransposed;
    leading = static_cast<int>(std::max(matrix.stride(by_rows ? 0 : 1), matrix.size(by_rows ? 1 : 0)));
  }
  int transpose, leading;

  Bf16Matrix of(const Tensor& matrix) const {
    const auto* const data = reinterpret_cast<const uint16_t*>(matrix.const_data_ptr<at::BFloat16>());
    return transpose == kNotTransposed ? Bf16Matrix{data, leading, 1} : Bf16Matrix{data, 1, leading};
  }
};

/// Without memory for panels. Rows of the result lie `row` apart; `bias` may be undefined.
TiledProduct tiled_product(const Tensor& a, const Tensor& b, int64_t row, bool add, const Tensor& bias) {
  return {.rows = a.size(0),
          .columns = b.size(1),
          .depth = a.size(1),
          .a = Layout(a).of(a),
          .b = Layout(b).of(b),
          .c_row = row,
          .add = add,
          .bias = data_of<float>(bias),
          .panels = nullptr};
}

/// Memory of a product for panels.
class Panels {
 public:
  Panels(TiledProduct& product, int64_t words) : memory_(at::empty({words}, at::kInt)) {
    product.panels = reinterpret_cast<uint32_t*>(memory_.mutable_data_ptr<int32_t>());
  }

 private:
  Tensor memory_;
};

/// A product whose right factor is laid out whole, for all threads.
class WideProduct {
 public:
  explicit WideProduct(const TiledProduct& product) : product_(product), panels_(product_, panel_words(product)) {
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
    constexpr int64_t kProductsPerTask = 1 << 22;  // or waking a thread costs more
    return std::max<int64_t>(1, kProductsPerTask / (kTiledBlock * product_.columns * product_.depth));
  }

  TiledProduct product_;
  Panels panels_;
};

/// A part of a deep product: rows or columns [begin, end).
void multiply_deep_part(TiledProduct part, bool by_rows, int64_t begin, int64_t end, float* result) {
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
  const Panels panels(part, deep_panel_words(part));
  amx::multiply_deep(part, result);
}

/// Each thread takes a share of the rows, or of the columns if there are more of these, and lays out for itself what it needs.
void multiply_deep(const TiledProduct& product, float* result) {
  const bool by_rows = product.rows >= product.columns;
  const int64_t size = by_rows ? product.rows : product.columns, blocks = tiled_blocks(size);
  const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
  at::parallel_for(0, blocks, (blocks + threads - 1) / threads, [&](int64_t begin, int64_t end) {
    multiply_deep_part(product, by_rows, begin * kTiledBlock, std::min(size, end * kTiledBlock), result);
  });
}

void product_in_tiles(const TiledProduct& product, float* result) {
  const bool is_deep = product.depth > kDepthBlock && product.depth > product.rows;
  is_deep ? multiply_deep(product, result) : WideProduct(product).multiply_all(result);
}

void product_by_mkl(const Tensor& result, const Tensor& a, const Tensor& b, bool add) {
  const Layout left(a), right(b);
  mkl_gemm()(kRowMajor, left.transpose, right.transpose, static_cast<int>(a.size(0)), static_cast<int>(b.size(1)),
             static_cast<int>(a.size(1)), 1, a.const_data_ptr(), left.leading, b.const_data_ptr(), right.leading, add ? 1 : 0,
             result.mutable_data_ptr<float>(), static_cast<int>(result.stride(0)));
}

void product_by_aten(const Tensor& result, const Tensor& a, const Tensor& b, bool add) {
  if (!add) result.zero_();
  if (a.numel() > 0) result.add_(at::mm(a, b));
}

ProductShape shape_of(const Tensor& a, const Tensor& b, bool add) {
  const auto is_transposed = [](const Tensor& matrix) { return Layout(matrix).transpose == kTransposed; };
  return {a.size(0), a.size(1), b.size(1), is_transposed(a), is_transposed(b), /*is_bf16=*/true, add};
}

/// result = or += a x b, or a x b + bias if that is defined.
void multiply(Bf16Backend backend, const Tensor& result, const Tensor& a, const Tensor& b, bool add, const Tensor& bias) {
  const TimedProduct timed(shape_of(a, b, add));
  RECORD_FUNCTION("lacuna::bf16_product", std::vector<c10::IValue>());
  if (!result.is_cpu() || a.numel() == 0 || b.numel() == 0) backend = Bf16Backend::kAten;
  if (backend == Bf16Backend::kTiles)
    return product_in_tiles(tiled_product(a, b, result.stride(0), add, bias), result.mutable_data_ptr<float>());
  if (bias.defined()) result.copy_(bias.expand_as(result));
  const bool adds = add || bias.defined();
  backend == Bf16Backend::kMkl ? product_by_mkl(result, a, b, adds) : product_by_aten(result, a, b, adds);
}

Bf16Backend best_bf16_backend() {
  static const Bf16Backend best = bf16_backends().front();
  return best;
}

}  // namespace

bool has_bf16_instructions() {
  return cpu_features().avx512_bf16;
}

Tensor rounded_to_bf16(const Tensor& values) {
  return values.to(at::kBFloat16);
}

RoundedWithSums rounded_with_sums(const Tensor& rows) {
  if (!has_row_kernels(rows)) return {rounded_to_bf16(rows), rows.sum(0)};
  const int64_t count = rows.size(0), columns = rows.size(1);
  const Tensor rounded = at::empty(rows.sizes(), rows.options().dtype(at::kBFloat16)),
               sums = at::empty({sum_blocks(count), columns}, rows.options());
  with_scalar_of(rows, [&](auto t) {
    using T = decltype(t);
    const RoundedRows<T> args = {columns, data_of<T>(rows), bf16_bits_of(rounded), mutable_data_of<T>(sums)};
    for_sum_blocks(row_kernels<T>().round_rows, args, count);
  });
  return {rounded, sums.sum(0)};
}

std::vector<Bf16Backend> bf16_backends() {
  std::vector<Bf16Backend> backends;
  if (has_amx()) backends.push_back(Bf16Backend::kTiles);
  if (mkl_gemm() != nullptr) backends.push_back(Bf16Backend::kMkl);
  backends.push_back(Bf16Backend::kAten);
  return backends;
}

void bf16_product(const Tensor& result, const Tensor& a, const Tensor& b, bool add) {
  bf16_product_by(best_bf16_backend(), result, a, b, add);
}

void bf16_product_by(Bf16Backend backend, const Tensor& result, const Tensor& a, const Tensor& b, bool add) {
  multiply(backend, result, a, b, add, {});
}

void bf16_product_in_blocks(const Tensor& a, const Tensor& b, int64_t block, const RowBlockUser& use) {
  const int64_t rows = a.size(0), columns = b.size(1);
  const auto for_blocks = [&](const auto& f) {
    for_parts((rows + block - 1) / block, 1, [&](int64_t first, int64_t last) {
      for (int64_t begin = first * block; begin < std::min(rows, last * block); begin += block) f(begin, std::min(rows, begin + block));
    });
  };
  if (best_bf16_backend() != Bf16Backend::kTiles || a.numel() == 0 || b.numel() == 0) {
    const Tensor product = at::empty({rows, columns}, at::kFloat);
    bf16_product(product, a, b);
    auto* const data = product.mutable_data_ptr<float>();
    return for_blocks([&](int64_t begin, int64_t end) { use(data + begin * columns, begin, end); });
  }
  const TimedProduct timed(shape_of(a, b, /*add=*/false));
  const WideProduct product(tiled_product(a, b, columns, /*add=*/false, {}));
  for_blocks([&](int64_t begin, int64_t end) {
    const Tensor memory = at::empty({block, columns}, at::kFloat);
    auto* const data = memory.mutable_data_ptr<float>();
    product.multiply(begin, end, data);
    use(data, begin, end);
  });
}

Tensor bf16_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor result = at::empty({x.size(0), weight.size(0)}, x.options().dtype(at::kFloat));
  multiply(best_bf16_backend(), result, x, weight.t(), /*add=*/false, bias);
  return result;
}

}  // namespace lacuna
