#pragma once

#include "kernels/gpu/block.h"

/// The table of slots of a decoder's hypotheses: a warp for each.
namespace lacuna::gpu {

struct MoveSlots {
  using Args = SlotMoves;
  static constexpr int kWarps = 8, kSharedBytes = 0;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& args, int64_t rows) {
    const int64_t row = block.index() * kWarps + block.warp();
    if (row >= rows) return;
    const int32_t parent = args.parents[row], count = parent < 0 ? 0 : args.from_counts[parent];
    int32_t* const to = args.to + row * args.to_stride;
    for (int32_t i = block.lane(); i < count; i += kLanes) to[i] = args.from[parent * args.from_stride + i];
    if (block.lane() != 0) return;
    to[count] = args.new_slots[row];
    args.to_counts[row] = count + 1;
    args.positions[row] = count;
  }
};

}  // namespace lacuna::gpu
