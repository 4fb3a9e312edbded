#pragma once

#include "kernels/gpu/block.h"

/// Label-smoothed cross-entropy: a block for each row of logits.
namespace lacuna::gpu {

/// What the loss reads of some logits: the largest, the first place of several alike, the sum of them all, and that of their exponentials
/// over the largest one's.
struct LogitSums {
  float top = kLowest, total = 0, mass = 0;
  int64_t place = 0;

  static constexpr float kLowest = -3.402823466e38f;

  LACUNA_KERNEL_CODE void add(float logit, int64_t at) {
    if (logit > top) {
      mass *= expf(top - logit);
      top = logit;
      place = at;
    }
    mass += expf(logit - top);
    total += logit;
  }
  LACUNA_KERNEL_CODE static LogitSums joined(const LogitSums& a, const LogitSums& b) {
    const bool is_first = a.top > b.top || (a.top == b.top && a.place < b.place);
    const float top = is_first ? a.top : b.top;
    return {top, a.total + b.total, a.mass * expf(a.top - top) + b.mass * expf(b.top - top), is_first ? a.place : b.place};
  }
  template <class Block>
  LACUNA_KERNEL_CODE LogitSums exchanged(const Block& block, int distance) const {
    return {block.exchanged(top, distance), block.exchanged(total, distance), block.exchanged(mass, distance),
            block.exchanged(place, distance)};
  }
};

struct SmoothedLoss {
  using Args = LossRows<float>;
  static constexpr int kWarps = 8, kSharedBytes = kWarps * static_cast<int>(sizeof(LogitSums));
  static constexpr int64_t kStep = kWarps * kFeaturesOfWarp;  ///< logits from one quad of a thread to its next

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& a, int64_t /*rows*/) {
    const int64_t row = block.index(), size = a.vocab_size, target = a.targets[row];
    const int64_t first = (block.warp() * kLanes + block.lane()) * Quad::kSize;
    float* const logits = a.logits + row * size;
    LogitSums own;
    for (int64_t i = first; i < size; i += kStep) {
      const Quad quad = load_quad(logits + i, size - i);
      for (int k = 0; k < Quad::kSize; ++k)
        if (i + k < size) own.add(quad.x[k], i + k);
    }
    const LogitSums all = joined(block, own);
    const double uniform = a.smoothing / static_cast<double>(size);
    if (block.warp() == 0 && block.lane() == 0) note(a, row, all, 0 <= target && target < size ? logits[target] : NAN, uniform);
    if (!a.wants_gradient) return;
    block.sync();  // the target's logit has been read
    const float scale = 1 / all.mass, spread = static_cast<float>(uniform), off_target = static_cast<float>(1 - a.smoothing);
    for (int64_t i = first; i < size; i += kStep) {
      Quad quad = load_quad(logits + i, size - i);
      for (int k = 0; k < Quad::kSize; ++k) quad.x[k] = expf(quad.x[k] - all.top) * scale - spread - (i + k == target ? off_target : 0.f);
      a.rounded_gradient != nullptr ? store_quad(a.rounded_gradient + row * size + i, quad, size - i)
                                    : store_quad(logits + i, quad, size - i);
    }
  }

 private:
  /// Joins the sums of all threads, always in the same order; the result is on every thread.
  template <class Block>
  LACUNA_KERNEL_CODE static LogitSums joined(const Block& block, LogitSums own) {
    for (int distance = kLanes / 2; distance > 0; distance /= 2) own = LogitSums::joined(own, own.exchanged(block, distance));
    auto* const shared = reinterpret_cast<LogitSums*>(block.shared());
    if (block.lane() == 0) shared[block.warp()] = own;
    block.sync();
    LogitSums all = shared[0];
    for (int warp = 1; warp < kWarps; ++warp) all = LogitSums::joined(all, shared[warp]);
    return all;
  }

  LACUNA_KERNEL_CODE static void note(const Args& a, int64_t row, const LogitSums& all, float at_target, double uniform) {
    const double log_sum = static_cast<double>(all.top) + log(static_cast<double>(all.mass));
    a.nll[row] = log_sum - static_cast<double>(at_target);
    a.loss[row] = log_sum - (1 - a.smoothing) * static_cast<double>(at_target) - uniform * static_cast<double>(all.total);
    a.correct[row] = all.place == a.targets[row] && at_target == all.top;
  }
};

}  // namespace lacuna::gpu
