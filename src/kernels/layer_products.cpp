#include "kernels/layer_products.h"

#include "kernels/rounded_copies.h"

namespace lacuna {
namespace {

Tensor sums_of_rounded(const Tensor& rows) {
  const Tensor sums = at::empty({sum_blocks(rows.size(0)), rows.size(1)}, at::kFloat);
  const SummedRows<float> args = {rows.size(1), bf16_bits_of(rows), mutable_data_of<float>(sums)};
  for_sum_blocks(row_kernels<float>().sum_rows, args, rows.size(0));
  return sums.sum(0);
}

}  // namespace

Tensor rounded_to_bf16(const Tensor& values) {
  const Tensor copy = RoundedCopies::of(values);
  return copy.defined() ? copy : values.to(at::kBFloat16);
}

RoundedWithSums rounded_with_sums(const Tensor& rows) {
  if (!is_on_gpu(rows) && rows.scalar_type() == at::kBFloat16) return {rows, sums_of_rounded(rows)};
  if (!has_row_kernels(rows)) return {rounded_to_bf16(rows), rows.sum(0, /*keepdim=*/false, at::kFloat)};
  const int64_t count = rows.size(0), columns = rows.size(1);
  const Tensor rounded = at::empty(rows.sizes(), rows.options().dtype(at::kBFloat16)),
               sums = at::empty({sum_blocks(count), columns}, rows.options());
  with_scalar_of(rows, [&](auto t) {
    using T = decltype(t);
    const RoundedRows<T> args = {columns, data_of<T>(rows), bf16_bits_of(rounded), mutable_data_of<T>(sums)};
    if constexpr (std::is_same_v<T, float>) {
      const auto start = [&](const gpu::Kernels& kernels, void* stream) { return kernels.round_rows(args, count, stream); };
      if (has_gpu_rows(rows)) return with_gpu_kernels(rows, start);
    }
    for_sum_blocks(row_kernels<T>().round_rows, args, count);
  });
  return {rounded, sums.sum(0)};
}

}  // namespace lacuna
