#pragma once

#include <vector>

#include "base/ragged.h"
#include "kernels/product_in_blocks.h"

namespace lacuna {

/// True where this machine has instructions for bf16 products (AVX512-BF16 or AMX, which comes with it): there they are several times
/// faster than those of float.
bool has_bf16_instructions();

/// A copy of float values rounded to bf16.
Tensor rounded_to_bf16(const Tensor& values);

/// Contiguous rows [T, N] rounded to bf16 (they may be so already), and their column sums [N] in float: of a product's gradient, what the
/// gradients of its factors and of its bias are made of.
struct RoundedWithSums {
  Tensor rounded, sums;
};
RoundedWithSums rounded_with_sums(const Tensor& rows);

/// The implementation of bf16 products: our own loops, where the processor has tiles (AMX) or bf16 in vectors (AVX512-BF16); MKL, where
/// LibTorch brings it and the processor is not AMD's; our own loops of float, with factors widened to it; ATen, which on the CPU rounds the
/// product, but no sum inside it, to bf16 too.
enum class Bf16Backend { kTiles, kVectors, kMkl, kWidened, kAten };
/// The backends that this machine has, best first; the last is kAten.
std::vector<Bf16Backend> bf16_backends();
std::string name_of(Bf16Backend backend);
/// True for kTiles, kVectors and kWidened, which are our own loops.
bool is_our_own(Bf16Backend backend);

/// result [M, N] float = a [M, K] x b [K, N], or with `add` result += a x b, by the best backend (on other devices by ATen). Factors are
/// bf16, row by row or column by column (a transposed view will do); every sum is taken in float.
void bf16_product(const Tensor& result, const Tensor& a, const Tensor& b, bool add = false);
/// From now on GPUs sum bf16 products in float; LibTorch's default lets partial sums be rounded to bf16. To be called before the first such
/// product on a GPU.
void sum_in_float_on_gpu();

/// bf16_product by this backend, for tests and benchmarks.
void bf16_product_by(Bf16Backend backend, const Tensor& result, const Tensor& a, const Tensor& b, bool add = false);

/// The product a x b (+ bias, float, may be undefined) on the CPU, `block` rows at a time (a multiple of 32), each block for `use` on the
/// thread that made it, while it is in its cache. A profile counts the time of `use` as the product's.
void bf16_product_by_row_blocks(const Tensor& a, const Tensor& b, const Tensor& bias, int64_t block, const RowBlockUser& use);

/// x [T, K] x weight [N, K]^T + bias [N] -> [T, N] float, of factors in bf16. `bias` is float and may be undefined.
Tensor bf16_linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace lacuna
