#pragma once

#include "base/ragged.h"

namespace lacuna {

/// True where this machine has instructions for bf16 products (AVX512-BF16 or AMX, which comes with it): there they are several times
/// faster than those of float.
bool has_bf16_instructions();

/// A copy of float values rounded to bf16.
Tensor rounded_to_bf16(const Tensor& values);

/// The same of rows [T, N], and their column sums [N] in float: what a product's gradient is to its factors and to its bias.
struct RoundedWithSums {
  Tensor rounded, sums;
};
RoundedWithSums rounded_with_sums(const Tensor& rows);

/// result [M, N] float = a [M, K] x b [K, N], or with `add` result += a x b. Factors are bf16, row by row or column by column (a
/// transposed view will do); every sum is taken in float. On processors of AMD and other devices the product, but no sum inside it, is
/// rounded to bf16 too: the library that is fast there can't do otherwise.
void bf16_product(const Tensor& result, const Tensor& a, const Tensor& b, bool add = false);

/// x [T, K] x weight [N, K]^T + bias [N] -> [T, N] float, of factors in bf16. `bias` is float and may be undefined.
Tensor bf16_linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace lacuna
