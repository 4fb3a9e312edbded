#include "model/rotary_positions.h"

#include <algorithm>
#include <utility>

namespace lacuna {
namespace {

/// Returns the number of positions up to the last of these.
int64_t count_of(const std::vector<int32_t>& positions) {
  return positions.empty() ? 0 : 1 + *std::max_element(positions.begin(), positions.end());
}

}  // namespace

Tensor RotaryPositions::turned(const Tensor& qkv, std::vector<int32_t> positions) {
  const int64_t d_model = qkv.size(1) / 3;
  Rotation rotation = table(count_of(positions), qkv.scalar_type() == at::kDouble ? at::kDouble : at::kFloat, qkv.device());
  rotation.positions = std::move(positions);
  return lacuna::turned(qkv.view({qkv.size(0), 3, d_model / d_head_, d_head_}), rotation).view(qkv.sizes());
}

void RotaryPositions::turn(float* qkv, int64_t num_heads, const std::vector<int32_t>& positions) {
  lacuna::turn(qkv, 3, num_heads, table(count_of(positions), at::kFloat, at::kCPU), positions);
}

Rotation RotaryPositions::table(int64_t count, at::ScalarType type, at::Device device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Tensor& known = table_.cosines;
  if (!known.defined() || known.size(0) < count || known.scalar_type() != type || known.device() != device) {
    table_ = rotation_table(std::max<int64_t>(2 * count, 256), d_head_);
    table_.cosines = table_.cosines.to(device, type);
    table_.sines = table_.sines.to(device, type);
    table_.is_interleaved = is_interleaved_;
  }
  return table_;
}

}  // namespace lacuna
