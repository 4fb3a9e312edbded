#include "kernels/matmul.h"

#include <ATen/Context.h>

#include <atomic>

#include "kernels/device_work.h"
#include "kernels/layer_products.h"
#include "kernels/profile.h"
#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

std::atomic<MatmulBackend>& current_backend() {
  static std::atomic<MatmulBackend> backend = matmul_backends().front();
  return backend;
}

const BlockKernel<FloatFactor>& best_float_kernel() {
  static const BlockKernel<FloatFactor> best = float_block_kernels().front().kernel;
  return best;
}

bool is_bf16(const Tensor& factor) {
  return factor.scalar_type() == at::kBFloat16;
}

/// Calls f(kernel, a, b) with the kernel of our own loops for such a product, and with factors that it takes. Returns
/// false where LibTorch multiplies.
template <class F>
bool with_block_kernel(const Tensor& a, const Tensor& b, Precision precision, const F& f) {
  static const CpuTarget bf16_target = bf16_targets().front();
  if (is_on_gpu(a) || a.numel() == 0 || b.numel() == 0) return false;
  const bool in_tiles = precision == Precision::kBf16x3 && bf16_target == CpuTarget::kAmx;
  const bool in_blocks = in_tiles || matmul_backend() == MatmulBackend::kBlocks;
  if (!is_bf16(a) && (a.scalar_type() != at::kFloat || !in_blocks)) return false;
  if (is_bf16(a) && bf16_target == CpuTarget::kAmx)
    f(amx::kBf16Blocks, a, b);
  else if (is_bf16(a) && bf16_target == CpuTarget::kAvx512Bf16)
    f(avx512_bf16::kBf16Blocks, a, b);
  else if (in_tiles && !is_bf16(a))
    f(amx::kBf16x3Blocks, a, b);
  else
    f(best_float_kernel(), a.to(at::kFloat), b.to(at::kFloat));
  return true;
}

/// Makes GPUs sum bf16 products in float from now on; LibTorch's default lets partial sums be rounded to bf16.
void sum_in_float_on_gpu() {
  [[maybe_unused]] static const bool is_set = (at::globalContext().setAllowBF16ReductionCuBLAS(false), true);
}

void multiply_bf16_by_libtorch(Tensor result, const Tensor& a, const Tensor& b, bool add, const Tensor& bias) {
  if (bias.defined()) result.copy_(bias.expand_as(result));
  const bool adds = add || bias.defined();
  if (a.is_cuda() && a.numel() > 0) {
    sum_in_float_on_gpu();
    adds ? at::addmm_out(result, result, a, b, at::kFloat) : at::mm_out(result, a, b, at::kFloat);
    return;
  }
  if (is_on_gpu(a) && a.numel() > 0) {  // emulated: LibTorch's product of bf16 that is returned in float is the GPU's alone
    const CountedAsOne launch;
    const Tensor left = a.to(at::kFloat), right = b.to(at::kFloat);
    adds ? at::addmm_out(result, result, left, right) : at::mm_out(result, left, right);
    return;
  }
  if (!adds) result.zero_();
  if (a.numel() > 0) result.add_(at::mm(a, b));
}

void multiply_by_libtorch(Tensor result, const Tensor& a, const Tensor& b, bool add, const Tensor& bias) {
  if (is_bf16(a)) return multiply_bf16_by_libtorch(result, a, b, add, bias);
  if (add) {
    result.addmm_(a, b);
  } else if (bias.defined()) {
    at::addmm_out(result, bias, a, b);
  } else {
    at::mm_out(result, a, b);
  }
}

ProductShape profiled_shape(const Tensor& a, const Tensor& b, Precision precision, bool add = false) {
  return product_shape(a, b, is_bf16(a) ? Precision::kBf16 : precision, add);
}

/// Sets result = a x b + bias, or adds a x b to it.
void multiply(const Tensor& result, const Tensor& a, const Tensor& b, bool add, const Tensor& bias, Precision precision) {
  const TimedProduct timed(profiled_shape(a, b, precision, add));
  const auto in_blocks = [&](const auto& kernel, const Tensor& left, const Tensor& right) {
    product_in_blocks(kernel, result, left, right, add, bias);
  };
  if (!with_block_kernel(a, b, precision, in_blocks)) multiply_by_libtorch(result, a, b, add, bias);
}

}  // namespace

std::vector<MatmulBackend> matmul_backends() {
  if (__builtin_cpu_is("amd") != 0) return {MatmulBackend::kBlocks, MatmulBackend::kLibTorch};
  return {MatmulBackend::kLibTorch, MatmulBackend::kBlocks};
}

MatmulBackend matmul_backend() {
  return current_backend();
}

void set_matmul_backend(MatmulBackend backend) {
  current_backend() = backend;
}

const char* name_of(MatmulBackend backend) {
  return backend == MatmulBackend::kBlocks ? "blocks" : "default";
}

std::vector<CpuTarget> bf16_targets() {
  std::vector<CpuTarget> targets = {CpuTarget::kAmx, CpuTarget::kAvx512Bf16, CpuTarget::kAvx2};
  std::erase_if(targets, [](CpuTarget target) { return !cpu_has(target); });
  return targets;
}

Tensor matmul(const Tensor& a, const Tensor& b, const Tensor& bias, Precision precision) {
  Tensor result = at::empty({a.size(0), b.size(1)}, is_bf16(a) ? a.options().dtype(at::kFloat) : a.options());
  multiply(result, a, b, /*add=*/false, bias, precision);
  return result;
}

void matmul_into(const Tensor& result, const Tensor& a, const Tensor& b, bool add, Precision precision) {
  multiply(result, a, b, add, {}, precision);
}

Tensor matmul_to_bf16(const Tensor& a, const Tensor& b, const Tensor& bias) {
  if (is_on_gpu(a)) {
    sum_in_float_on_gpu();
    return bias.defined() ? at::addmm(rounded_to_bf16(bias), a, b) : at::mm(a, b);
  }
  Tensor result = at::empty({a.size(0), b.size(1)}, at::kBFloat16);
  const auto round_block = [&](const float* rows, int64_t begin, int64_t end) {
    row_kernels<float>().narrow_rows(end - begin, b.size(1), rows, bf16_bits_of(result) + begin * b.size(1), b.size(1));
  };
  matmul_by_row_blocks(a, b, bias, kRowsPerSum, round_block, Precision::kBf16);
  return result;
}

void matmul_by_row_blocks(const Tensor& a, const Tensor& b, const Tensor& bias, int64_t block, const RowBlockUser& use,
                          Precision precision) {
  const auto in_blocks = [&](const auto& kernel, const Tensor& left, const Tensor& right) {
    const TimedProduct timed(profiled_shape(a, b, precision));
    product_by_row_blocks(kernel, left, right, bias, block, use);
  };
  if (!with_block_kernel(a, b, precision, in_blocks)) use_row_blocks(matmul(a, b, bias, precision), block, use);
}

}  // namespace lacuna
