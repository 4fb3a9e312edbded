#pragma once

#include <cstdint>
#include <vector>

#include "attention/gpu/launch.h"
#include "attention/rows/row_functions.h"
#include "emulated_block.h"
#include "kernels/gpu/started.h"

/// From a type's row map to kernels that run on the CPU, in an EmulatedBlock.
namespace lacuna::cuda {

/// work(block, index, place, memory) for every block of the grid, by each of its threads.
template <class Block, class Work>
void emulate(int blocks, int heads, int shared_bytes, Work work) {
  if (blocks * heads > 0) gpu::count_launch();
  std::vector<unsigned char> memory(static_cast<size_t>(shared_bytes) * Block::kWarps + 128);  // it may have more warps than asked for
  unsigned char* const aligned = memory.data() + (128 - reinterpret_cast<uintptr_t>(memory.data()) % 128);
  static thread_local typename Block::Meeting meeting;
  meeting.turns.run(Block::kThreads, [&](int thread) {
    const Block block(meeting, thread);
    for (int i = 0; i < blocks * heads; ++i) {
      work(block, i / heads, i % heads, aligned);
      block.sync();
    }
  });
}

template <class Map, class Options, class T, class Block, bool kBackward>
const char* emulate_short_rows(const void* options, const KernelCall<T>& call, const Launch& launch) {
  const Map map = types::map_of<Map, Options>(options);
  return with_width(launch.width, [&]<int kWidth>(std::integral_constant<int, kWidth>) -> const char* {
    emulate<Block>(call.schedule.num_short, call.schedule.num_heads, launch.shared_bytes,
                   [&](const Block& block, int index, int place, unsigned char* memory) {
                     short_block<kWidth, kBackward>(map, call, block, index, place, memory);
                   });
    return nullptr;
  });
}

template <class Map, class Options, class T, class Block, LongPass kPass>
const char* emulate_long_rows(const void* options, const KernelCall<T>& call, const Launch& launch) {
  const Map map = types::map_of<Map, Options>(options);
  const int blocks = kPass == LongPass::kKeyGradients ? call.schedule.num_long_keys : call.schedule.num_long_tiles;
  emulate<Block>(
      blocks, call.schedule.num_heads, launch.shared_bytes,
      [&](const Block& block, int index, int place, unsigned char* memory) { long_block<kPass>(map, call, block, index, place, memory); });
  return nullptr;
}

template <class Map, class Options, class T, class Block>
const char* emulate_one_query(const void* options, const OneQueryCall<T>& call, int blocks, const Launch& launch) {
  const Map map = types::map_of<Map, Options>(options);
  emulate<Block>(blocks, 1, launch.shared_bytes, [&](const Block& block, int index, int /*place*/, unsigned char* memory) {
    OneQuery<Map, T, Block>(map, call, block, index, memory).run(blocks);
  });
  return nullptr;
}

template <class Map, class Options, class T, class Block>
KernelFunctions<T> emulated_functions_for() {
  KernelFunctions<T> functions = {.forward = [](const void* options, const KernelCall<T>& call, const Launch& launch) -> const char* {
                                    const Map map = types::map_of<Map, Options>(options);
                                    emulate<Block>(call.schedule.num_tiles, call.schedule.num_heads, launch.shared_bytes,
                                                   [&](const Block& block, int index, int place, unsigned char* memory) {
                                                     forward_block(map, call, block, index, place, memory);
                                                   });
                                    return nullptr;
                                  },
                                  .backward = [](const void* options, const KernelCall<T>& call, const Launch& launch) -> const char* {
                                    const Map map = types::map_of<Map, Options>(options);
                                    emulate<Block>(call.schedule.num_chunks, call.schedule.num_heads, launch.shared_bytes,
                                                   [&](const Block& block, int index, int place, unsigned char* memory) {
                                                     backward_block(map, call, block, index, place, memory);
                                                   });
                                    gpu::count_launch();
                                    for (int row = 0; row < call.schedule.num_key_rows; ++row)
                                      for (int place = 0; place < call.schedule.num_heads; ++place)
                                        for (int c = 0; c < call.d_head; ++c) sum_partials(call, row, place, c);
                                    return nullptr;
                                  }};
  using ShortBlock = std::conditional_t<Block::kLanes == 1, Block, EmulatedBlock<32, 2>>;  // a whole warp, or one lane that holds all
  if constexpr (kHasShortRows<T, ShortBlock> && types::RunsOnRowsTogether<Map>) {
    functions.short_forward = emulate_short_rows<Map, Options, T, ShortBlock, false>;
    functions.short_backward = emulate_short_rows<Map, Options, T, ShortBlock, true>;
    functions.long_forward = emulate_long_rows<Map, Options, T, ShortBlock, LongPass::kForward>;
    functions.long_query_gradients = emulate_long_rows<Map, Options, T, ShortBlock, LongPass::kQueryGradients>;
    functions.long_key_gradients = emulate_long_rows<Map, Options, T, ShortBlock, LongPass::kKeyGradients>;
  }
  functions.one_query = emulate_one_query<Map, Options, T, Block>;
  return functions;
}

template <class Map, class Options, class Block>
TypeKernels kernels_for(const char* type) {
  return {.type = type,
          .for_float = emulated_functions_for<Map, Options, float, Block>(),
          .for_bf16 = emulated_functions_for<Map, Options, Bf16, Block>(),
          .rows = types::RowFunctionsOf<Map, Options, WarpRow<EmulatedBlock<1, 1>>>::get()};
}

}  // namespace lacuna::cuda
