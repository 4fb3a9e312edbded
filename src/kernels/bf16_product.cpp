#include "kernels/bf16_product.h"

#include <ATen/Context.h>
#include <dlfcn.h>

#include "base/profile.h"
#include "kernels/cpu_features.h"
#include "kernels/packed_product.h"
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

void product_by_mkl(const Tensor& result, const Tensor& a, const Tensor& b, bool add) {
  const MatrixLayout left(a), right(b);
  const auto transposed = [](const MatrixLayout& layout) { return layout.by_rows ? kNotTransposed : kTransposed; };
  const auto size = [](int64_t number) { return static_cast<int>(number); };
  mkl_gemm()(kRowMajor, transposed(left), transposed(right), size(a.size(0)), size(b.size(1)), size(a.size(1)), 1, a.const_data_ptr(),
             size(left.leading), b.const_data_ptr(), size(right.leading), add ? 1 : 0, result.mutable_data_ptr<float>(),
             size(result.stride(0)));
}

void product_by_aten(const Tensor& result, const Tensor& a, const Tensor& b, bool add) {
  if (a.is_cuda() && a.numel() > 0) {  // a GPU's sums are float from the start
    sum_in_float_on_gpu();
    Tensor to = result;
    add ? at::addmm_out(to, result, a, b, at::kFloat) : at::mm_out(to, a, b, at::kFloat);
    return;
  }
  if (!add) result.zero_();
  if (a.numel() > 0) result.add_(at::mm(a, b));
}

/// Calls f with the kernel of our own loops and with factors that it takes; false where they are not what multiplies.
template <class F>
bool with_block_kernel(Bf16Backend backend, const Tensor& a, const Tensor& b, const F& f) {
  static const BlockKernel<FloatFactor> of_float = float_block_kernels().front().kernel;
  if (!a.is_cpu() || a.numel() == 0 || b.numel() == 0) return false;
  switch (backend) {
    case Bf16Backend::kTiles:
      f(amx::kBf16Blocks, a, b);
      return true;
    case Bf16Backend::kVectors:
      f(avx512_bf16::kBf16Blocks, a, b);
      return true;
    case Bf16Backend::kWidened:
      f(of_float, a.to(at::kFloat), b.to(at::kFloat));
      return true;
    case Bf16Backend::kMkl:
    case Bf16Backend::kAten:
      break;
  }
  return false;
}

/// result = or += a x b, or a x b + bias if that is defined.
void multiply(Bf16Backend backend, const Tensor& result, const Tensor& a, const Tensor& b, bool add, const Tensor& bias) {
  const TimedProduct timed(product_shape(a, b, FactorPrecision::kBf16, add));
  if (with_block_kernel(backend, a, b, [&](const auto& kernel, const Tensor& left, const Tensor& right) {
        product_in_blocks(kernel, result, left, right, add, bias);
      }))
    return;
  if (bias.defined()) result.copy_(bias.expand_as(result));
  const bool adds = add || bias.defined(), by_mkl = backend == Bf16Backend::kMkl && result.is_cpu() && a.numel() > 0 && b.numel() > 0;
  by_mkl ? product_by_mkl(result, a, b, adds) : product_by_aten(result, a, b, adds);
}

Bf16Backend best_bf16_backend() {
  static const Bf16Backend best = bf16_backends().front();
  return best;
}

Tensor sums_of_rounded(const Tensor& rows) {
  const Tensor sums = at::empty({sum_blocks(rows.size(0)), rows.size(1)}, at::kFloat);
  const SummedRows<float> args = {rows.size(1), bf16_bits_of(rows), mutable_data_of<float>(sums)};
  for_sum_blocks(row_kernels<float>().sum_rows, args, rows.size(0));
  return sums.sum(0);
}

}  // namespace

bool has_bf16_instructions() {
  return cpu_features().avx512_bf16;
}

Tensor rounded_to_bf16(const Tensor& values) {
  return values.to(at::kBFloat16);
}

RoundedWithSums rounded_with_sums(const Tensor& rows) {
  if (rows.is_cpu() && rows.scalar_type() == at::kBFloat16) return {rows, sums_of_rounded(rows)};
  if (!has_row_kernels(rows)) return {rounded_to_bf16(rows), rows.sum(0, /*keepdim=*/false, at::kFloat)};
  const int64_t count = rows.size(0), columns = rows.size(1);
  const Tensor rounded = at::empty(rows.sizes(), rows.options().dtype(at::kBFloat16)),
               sums = at::empty({sum_blocks(count), columns}, rows.options());
  with_scalar_of(rows, [&](auto t) {
    using T = decltype(t);
    const RoundedRows<T> args = {columns, data_of<T>(rows), bf16_bits_of(rounded), mutable_data_of<T>(sums)};
    if constexpr (gpu::kAreBuilt && std::is_same_v<T, float>) {
      if (has_gpu_rows(rows)) return on_gpu(rows.device(), [&](void* stream) { return gpu::round_rows(args, count, stream); });
    }
    for_sum_blocks(row_kernels<T>().round_rows, args, count);
  });
  return {rounded, sums.sum(0)};
}

std::vector<Bf16Backend> bf16_backends() {
  std::vector<Bf16Backend> backends;
  if (has_amx()) backends.push_back(Bf16Backend::kTiles);
  if (has_bf16_instructions()) backends.push_back(Bf16Backend::kVectors);
  if (mkl_gemm() != nullptr) backends.push_back(Bf16Backend::kMkl);
  backends.push_back(Bf16Backend::kWidened);
  backends.push_back(Bf16Backend::kAten);
  return backends;
}

std::string name_of(Bf16Backend backend) {
  switch (backend) {
    case Bf16Backend::kTiles:
      return "tiles";
    case Bf16Backend::kVectors:
      return "vectors";
    case Bf16Backend::kMkl:
      return "mkl";
    case Bf16Backend::kWidened:
      return "widened";
    case Bf16Backend::kAten:
      break;
  }
  return "aten";
}

bool is_our_own(Bf16Backend backend) {
  return backend != Bf16Backend::kMkl && backend != Bf16Backend::kAten;
}

void sum_in_float_on_gpu() {
  [[maybe_unused]] static const bool is_set = (at::globalContext().setAllowBF16ReductionCuBLAS(false), true);
}

void bf16_product(const Tensor& result, const Tensor& a, const Tensor& b, bool add) {
  bf16_product_by(best_bf16_backend(), result, a, b, add);
}

void bf16_product_by(Bf16Backend backend, const Tensor& result, const Tensor& a, const Tensor& b, bool add) {
  multiply(backend, result, a, b, add, {});
}

void bf16_product_by_row_blocks(const Tensor& a, const Tensor& b, const Tensor& bias, int64_t block, const RowBlockUser& use) {
  if (with_block_kernel(best_bf16_backend(), a, b, [&](const auto& kernel, const Tensor& left, const Tensor& right) {
        const TimedProduct timed(product_shape(a, b, FactorPrecision::kBf16));
        product_by_row_blocks(kernel, left, right, bias, block, use);
      }))
    return;
  const Tensor product = at::empty({a.size(0), b.size(1)}, at::kFloat);
  multiply(best_bf16_backend(), product, a, b, /*add=*/false, bias);
  use_row_blocks(product, block, use);
}

Tensor bf16_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  Tensor result = at::empty({x.size(0), weight.size(0)}, x.options().dtype(at::kFloat));
  multiply(best_bf16_backend(), result, x, weight.t(), /*add=*/false, bias);
  return result;
}

}  // namespace lacuna
