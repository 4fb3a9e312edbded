#include "kernels/bf16_product.h"

#include <ATen/record_function.h>
#include <dlfcn.h>

#include "base/error.h"
#include "base/profile.h"
#include "kernels/cpu_features.h"
#include "kernels/row_tensors.h"

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
};

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

void bf16_product(const Tensor& result, const Tensor& a, const Tensor& b, bool add) {
  const TimedPart timed(ProfilePart::kProducts, 2.0 * static_cast<double>(a.numel()) * static_cast<double>(b.size(1)));
  RECORD_FUNCTION("lacuna::bf16_product", std::vector<c10::IValue>());
  if (!result.is_cpu() || mkl_gemm() == nullptr || a.numel() == 0) {
    if (!add) result.zero_();
    if (a.numel() > 0) result.add_(at::mm(a, b));
    return;
  }
  const Layout left(a), right(b);
  mkl_gemm()(kRowMajor, left.transpose, right.transpose, static_cast<int>(a.size(0)), static_cast<int>(b.size(1)),
             static_cast<int>(a.size(1)), 1, a.const_data_ptr(), left.leading, b.const_data_ptr(), right.leading, add ? 1 : 0,
             result.mutable_data_ptr<float>(), static_cast<int>(result.stride(0)));
}

Tensor bf16_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor result = at::empty({x.size(0), weight.size(0)}, x.options().dtype(at::kFloat));
  if (bias.defined()) result.copy_(bias.expand_as(result));
  bf16_product(result, x, weight.t(), /*add=*/bias.defined());
  return result;
}

}  // namespace lacuna
