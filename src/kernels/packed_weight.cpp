#include "kernels/packed_weight.h"

#include <ATen/record_function.h>

#include "kernels/row_tensors.h"

namespace lacuna {
namespace {

/// Rows that pass a panel while it is in cache.
constexpr int64_t kRowBlock = 240;

}  // namespace

PackedWeight::PackedWeight(const Tensor& weight) : columns_(weight.size(0)), depth_(weight.size(1)) {
  if (!weight.is_cpu() || weight.scalar_type() != at::kFloat) {
    weight_ = weight.detach();
    return;
  }
  const int64_t width = packed_kernels().panel_columns, panels = (columns_ + width - 1) / width;
  const Tensor filled = at::constant_pad_nd(weight.detach(), {0, 0, 0, panels * width - columns_});
  panels_ = filled.view({panels, width, depth_}).transpose(1, 2).contiguous();
}

Tensor PackedWeight::multiply(const Tensor& x, const Tensor& bias) const {
  if (weight_.defined()) return at::linear(x, weight_, optional_of(bias));
  RECORD_FUNCTION("lacuna::packed_product", std::vector<c10::IValue>());
  const Tensor rows = x.contiguous(), result = at::empty({x.size(0), columns_}, x.options());
  const PackedProduct args = {depth_,
                              columns_,
                              rows.const_data_ptr<float>(),
                              panels_.const_data_ptr<float>(),
                              bias.defined() ? bias.const_data_ptr<float>() : nullptr,
                              result.mutable_data_ptr<float>()};
  const int64_t panels = panels_.size(0), total = x.size(0), blocks = (total + kRowBlock - 1) / kRowBlock;
  at::parallel_for(0, blocks * panels, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const int64_t begin = task / panels * kRowBlock;
      packed_kernels().multiply(args, task % panels, begin, std::min(total, begin + kRowBlock));
    }
  });
  return result;
}

}  // namespace lacuna
