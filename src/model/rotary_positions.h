#pragma once

#include <mutex>
#include <vector>

#include "config/options.h"
#include "kernels/rotation.h"

namespace lacuna {

/// Turns queries and keys of self-attention by their positions (`positions: rope`). Keeps the angles of the positions
/// needed so far; no parameters.
class RotaryPositions {
 public:
  explicit RotaryPositions(const ModelOptions& options)
      : d_head_(options.d_model / options.num_heads), is_interleaved_(options.position_layout == PositionLayout::kInterleaved) {}

  /// Returns qkv [T, 3D] with the queries and keys of each token turned by its position.
  Tensor turned(const Tensor& qkv, std::vector<int32_t> positions);
  /// Does that in place for rows qkv [T, 3D] of float on the CPU.
  void turn(float* qkv, int64_t num_heads, const std::vector<int32_t>& positions);

  /// Returns the angles of at least the first `count` positions.
  Rotation table(int64_t count, at::ScalarType type, at::Device device);

 private:
  int64_t d_head_;
  bool is_interleaved_;
  std::mutex mutex_;  // several translators may share a model
  Rotation table_;
};

}  // namespace lacuna
