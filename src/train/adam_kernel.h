#pragma once

#include "kernels/gpu/all_kernels.h"
#include "train/adam_step.h"

/// Adam's kernel: for nvcc, and for tests that emulate it.
namespace lacuna {

/// A thread for each element.
template <bool kAverages>
struct UpdateAll {
  struct Args {
    AdamPointers<float> pointers;
    AdamNumbers<float> numbers;
  };
  static constexpr int kWarps = 8, kSharedBytes = 0;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& args, int64_t count) {
    const int64_t i = (block.index() * kWarps + block.warp()) * gpu::kLanes + block.lane();
    if (i < count) update_element<float, kAverages>(args.pointers, args.numbers, i);
  }
};

/// Updates `count` elements. Returns null or an error message.
template <class Launcher>
const char* start_adam(const AdamPointers<float>& pointers, const AdamStep& step, int64_t count, void* stream) {
  const gpu::Grid grid = {gpu::Grid::blocks(count, UpdateAll<false>::kWarps * gpu::kLanes)};
  const AdamNumbers<float> numbers(step);
  if (pointers.average != nullptr) return Launcher::template start<UpdateAll<true>>({pointers, numbers}, count, grid, stream);
  return Launcher::template start<UpdateAll<false>>({pointers, numbers}, count, grid, stream);
}

}  // namespace lacuna
