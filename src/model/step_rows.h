#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/buffer.h"

namespace lacuna {

/// The rows of one decoding step of N hypotheses, in plain memory that stays from step to step, and the learned numbers of
/// the layers. A sub-layer reads the residual stream's rows (residual_stream.h) and writes `output`.
struct StepRows {
  /// `inner` is the width of the feed-forward layers' first product: F, or 2 F with a gate.
  StepRows(int64_t d_model, int64_t inner) : d_model_(d_model), widest_(std::max(3 * d_model, inner)), inmost_(std::max(d_model, inner)) {}

  std::vector<std::vector<float>> self_numbers, cross_numbers;                      ///< [layers]: MultiHeadAttention::numbers_of_steps()
  int64_t count = 0;                                                                ///< N
  float *residual = nullptr, *normed = nullptr, *sum = nullptr, *output = nullptr;  ///< [N, D]
  float* wide = nullptr;     ///< [N, 3 D or the inner width]: a sub-layer's first product
  float* narrow = nullptr;   ///< [N, D or F]: what the second product reads
  std::vector<int64_t> ids;  ///< [N] the newest tokens

  /// Lays out the rows of these tokens.
  void prepare(const std::vector<int32_t>& tokens) {
    ids.assign(tokens.begin(), tokens.end());
    const auto num_rows = static_cast<int64_t>(tokens.size());
    if (num_rows == count) return;
    count = num_rows;
    float* next = memory_.of(count * (4 * d_model_ + widest_ + inmost_) + 6 * kLine);
    const auto take = [&](int64_t columns) {
      float* const rows = next;
      next += (count * columns + kLine - 1) / kLine * kLine;
      return rows;
    };
    for (float** rows : {&residual, &normed, &sum, &output}) *rows = take(d_model_);
    wide = take(widest_);
    narrow = take(inmost_);
  }

 private:
  static constexpr int64_t kLine = 16;  // numbers in a line of the cache

  int64_t d_model_, widest_, inmost_;
  Buffer<float> memory_;
};

}  // namespace lacuna
