#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "attention/gpu/kernels.h"
#include "turns.h"

namespace lacuna::cuda {

/// A block of threads on the CPU, to test kernels without a GPU: one thread, or several that take turns.
template <int kLanesOfWarp, int kWarpsOfBlock>
class EmulatedBlock {
 public:
  static constexpr int kLanes = kLanesOfWarp, kWarps = kWarpsOfBlock, kThreads = kLanes * kWarps;

  /// State shared by the threads of a block.
  struct Meeting {
    gpu::Turns turns;
    gpu::Turns::Barrier all{kThreads}, warps[kWarps];
    float values[kThreads] = {};
    const void* shown[kThreads] = {};  ///< what each thread shows the others
    Meeting() {
      for (gpu::Turns::Barrier& warp : warps) warp.size = kLanes;
    }
  };

  EmulatedBlock() = default;
  EmulatedBlock(Meeting& meeting, int thread) : meeting_(&meeting), thread_(thread) { at_work_ = &meeting; }

  int lane() const { return thread_ % kLanes; }
  int warp() const { return thread_ / kLanes; }
  int warps() const { return kWarps; }
  void sync() const {
    if constexpr (kThreads > 1) meeting_->turns.wait(meeting_->all);
  }
  void sync_warp() const {
    if constexpr (kLanes > 1) meeting_->turns.wait(meeting_->warps[warp()]);
  }
  float sum(float x) const {
    return gathered(x, [](float a, float b) { return a + b; });
  }
  float max(float x) const {
    return gathered(x, [](float a, float b) { return std::max(a, b); });
  }
  int rank(bool holds, int& total) const {
    if constexpr (kLanes == 1) {
      total = holds;
      return 0;
    }
    share(holds ? 1.f : 0.f);
    int before = 0;
    total = 0;
    for (int i = 0; i < kLanes; ++i) {
      if (i == lane()) before = total;
      total += static_cast<int>(values()[i]);
    }
    sync_warp();
    return before;
  }

  static bool on_any_lane(bool holds) {
    if constexpr (kLanes == 1) return holds;
    return EmulatedBlock(*at_work_, at_work_->turns.current()).max(holds ? 1.f : 0.f) > 0;
  }

  // What a warp of 32 lanes can do beyond, by the manual of PTX: ldmatrix, mma.m16n8k16, and sums over four lanes.

  float sum_of_row(float x) const {
    return gathered_of_row(x, [](float a, float b) { return a + b; });
  }
  float max_of_row(float x) const {
    return gathered_of_row(x, [](float a, float b) { return std::max(a, b); });
  }
  void load_parts(const Bf16* row, uint32_t (&parts)[4]) const {
    exchange(row, [&](auto row_of) {
      for (int part = 0; part < 4; ++part) {
        const Bf16* const numbers = row_of(8 * part + lane() / 4) + 2 * (lane() % 4);
        parts[part] = pair(numbers[0], numbers[1]);
      }
    });
  }
  void load_parts_transposed(const Bf16* row, uint32_t (&parts)[4]) const {
    exchange(row, [&](auto row_of) {
      for (int part = 0; part < 4; ++part) {
        const int first = 8 * part + 2 * (lane() % 4), column = lane() / 4;
        parts[part] = pair(row_of(first)[column], row_of(first + 1)[column]);
      }
    });
  }
  void multiply_add(const uint32_t* left, const uint32_t* right, float& low0, float& low1, float& high0, float& high1) const {
    struct Given {
      const uint32_t *left, *right;
    };
    exchange(Given{left, right}, [&](auto given) {
      const auto left_at = [&](int row, int k) { return half(given(row % 8 * 4 + k % 8 / 2).left[row / 8 + k / 8 * 2], k % 2); };
      const auto right_at = [&](int k, int column) { return half(given(column * 4 + k % 8 / 2).right[k / 8], k % 2); };
      const int row = lane() / 4, column = 2 * (lane() % 4);
      for (int k = 0; k < 16; ++k) {
        low0 += left_at(row, k) * right_at(k, column);
        low1 += left_at(row, k) * right_at(k, column + 1);
        high0 += left_at(row + 8, k) * right_at(k, column);
        high1 += left_at(row + 8, k) * right_at(k, column + 1);
      }
    });
  }
  uint32_t rounded_pair(float first, float second) const { return pair(Bf16(first), Bf16(second)); }

 private:
  static uint32_t pair(Bf16 first, Bf16 second) { return first.bits | static_cast<uint32_t>(second.bits) << 16; }
  static float half(uint32_t both, int which) { return std::bit_cast<float>(which == 0 ? both << 16 : both & 0xffff0000u); }

  /// Calls use(shown by), which maps each lane of the warp to what it shows.
  template <class X, class F>
  void exchange(const X& own, F use) const {
    meeting_->shown[thread_] = &own;
    sync_warp();
    use([&](int lane) -> const X& { return *static_cast<const X*>(meeting_->shown[warp() * kLanes + lane]); });
    sync_warp();
  }
  template <class F>
  float gathered_of_row(float x, F join) const {
    if constexpr (kLanes == 1) return x;
    float result = x;
    exchange(x, [&](auto of) {
      const int first = lane() / 4 * 4;
      result = join(join(of(first), of(first + 1)), join(of(first + 2), of(first + 3)));
    });
    return result;
  }

  float* values() const { return meeting_->values + warp() * kLanes; }
  void share(float x) const {
    values()[lane()] = x;
    sync_warp();
  }
  template <class F>
  float gathered(float x, F join) const {
    if constexpr (kLanes == 1) return x;
    share(x);
    float result = values()[0];
    for (int i = 1; i < kLanes; ++i) result = join(result, values()[i]);
    sync_warp();
    return result;
  }

  inline static thread_local Meeting* at_work_ = nullptr;

  Meeting* meeting_ = nullptr;
  int thread_ = 0;
};

}  // namespace lacuna::cuda
