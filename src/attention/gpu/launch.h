#pragma once

#include <concepts>
#include <iterator>
#include <type_traits>

#include "attention/gpu/kernel.h"
#include "attention/gpu/long_rows.h"
#include "attention/gpu/one_query.h"
#include "attention/gpu/short_rows.h"
#ifdef __CUDACC__
#include "base/cuda_message.h"
#include "kernels/gpu/started.h"
#endif

/// From a type's row map to the plain functions of kernels.h.
namespace lacuna::cuda {

// --- a block's work ---

/// Returns where the rows of a long task lie, for the block that works on it at `index` and `place` of its launch.
template <class T>
LACUNA_DEVICE unsigned char* rows_of_block(const KernelCall<T>& call, int index, int place) {
  return call.row_memory == nullptr ? nullptr : call.row_memory + (int64_t{index} * call.schedule.num_heads + place) * call.row_bytes;
}

template <class Map, class T, class Block>
LACUNA_DEVICE void forward_block(const Map& map, const KernelCall<T>& call, const Block& block, int index, int place,
                                 unsigned char* memory) {
  const QueryTile tile = call.schedule.tiles[index];
  const SentenceTask task = call.schedule.tasks[tile.task];
  const SharedMemory<T> parts(memory, rows_of_block(call, index, place), call, task, block.warp(), block.warps(), false);
  Kernel<Map, T, Block>(map, call, block, task, place, parts).forward(tile);
}

template <class Map, class T, class Block>
LACUNA_DEVICE void backward_block(const Map& map, const KernelCall<T>& call, const Block& block, int index, int place,
                                  unsigned char* memory) {
  const Chunk chunk = call.schedule.chunks[index];
  const SentenceTask task = call.schedule.tasks[call.schedule.tiles[chunk.first_tile].task];
  const SharedMemory<T> parts(memory, rows_of_block(call, index, place), call, task, block.warp(), block.warps(), true);
  Kernel<Map, T, Block> kernel(map, call, block, task, place, parts);
  for (int i = 0; i < chunk.num_tiles; ++i) kernel.backward(call.schedule.tiles[chunk.first_tile + i], chunk);
}

/// Element c of the gradients of key row `row`, for the head at `place` of the schedule, if any of its chunks has a part in them.
template <class T>
LACUNA_DEVICE void sum_partials(const KernelCall<T>& call, int row, int place, int c) {
  const BlockSchedule& schedule = call.schedule;
  if (schedule.first_source[row] == schedule.first_source[row + 1]) return;
  float of_k = 0, of_v = 0;
  for (int i = schedule.first_source[row]; i < schedule.first_source[row + 1]; ++i) {
    const int64_t from = (int64_t{place} * schedule.num_partials + schedule.sources[i]) * call.width + c;
    of_k += call.k_partial[from];
    of_v += call.v_partial[from];
  }
  const int head = schedule.heads[place];
  call.k_gradient.data[row * call.k_gradient.row + head * call.k_gradient.head + c] = static_cast<T>(of_k);
  call.v_gradient.data[row * call.v_gradient.row + head * call.v_gradient.head + c] = static_cast<T>(of_v);
}

template <int kWidth, bool kBackward, class Map, class T, class Block>
LACUNA_DEVICE void short_block(const Map& map, const KernelCall<T>& call, const Block& block, int index, int place, unsigned char* memory) {
  const ShortSentence& sentence = call.schedule.short_sentences[index];
  const ShortRowsMemory<T> parts(memory, call.width, sentence, block.warp(), block.warps(), kBackward);
  const ShortRows<Map, T, Block, kWidth> rows(map, call, block, sentence, place, parts);
  if constexpr (kBackward) {
    rows.backward();
  } else {
    rows.forward();
  }
}

/// Returns f(std::integral_constant<int, width>) for the one of kShortWidths that `width` is.
template <class F>
const char* with_width(int width, F f) {
  static_assert(std::size(kShortWidths) == 3 && kShortWidths[2] == kMostShortKeys);
  if (width == kShortWidths[0]) return f(std::integral_constant<int, kShortWidths[0]>());
  if (width == kShortWidths[1]) return f(std::integral_constant<int, kShortWidths[1]>());
  return f(std::integral_constant<int, kShortWidths[2]>());
}

#ifdef __CUDACC__

constexpr int kThreads = Block::kLanes * kWarps;
/// Blocks that a multiprocessor has registers for. It has shared memory for hardly more (registers.md); and without a number, nvcc takes
/// registers from a block, which then spills, to make room for another.
constexpr int kForwardBlocks = 3;
template <class T>
inline constexpr int kBackwardBlocks = std::is_same_v<T, float> ? 2 : 3;

template <class Map, class T>
__global__ void __launch_bounds__(kThreads, kForwardBlocks)
    forward_kernel(const __grid_constant__ Map map, const __grid_constant__ KernelCall<T> call) {
  extern __shared__ __align__(128) unsigned char memory[];
  forward_block(map, call, Block(), static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), memory);
}

template <class Map, class T>
__global__ void __launch_bounds__(kThreads, kBackwardBlocks<T>)
    backward_kernel(const __grid_constant__ Map map, const __grid_constant__ KernelCall<T> call) {
  extern __shared__ __align__(128) unsigned char memory[];
  backward_block(map, call, Block(), static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), memory);
}

template <class T>
__global__ void __launch_bounds__(kThreads) sum_partials_kernel(const __grid_constant__ KernelCall<T> call) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + static_cast<int64_t>(threadIdx.x);
  const auto row = static_cast<int>(i / call.d_head);
  if (row < call.schedule.num_key_rows) sum_partials(call, row, static_cast<int>(blockIdx.y), static_cast<int>(i % call.d_head));
}

template <class... Parameters, class... Arguments>
const char* start(void (*kernel)(Parameters...), int blocks, int heads, const Launch& launch, const Arguments&... arguments) {
  if (blocks == 0 || heads == 0) return nullptr;
  // To the same value always: it is the kernel's for the whole process, and other threads launch it too.
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, gpu_shared_bytes());
  if (error != cudaSuccess) {
    cudaGetLastError();  // or the next launch would report it
    return message_of(error);
  }
  gpu::count_launch();
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(heads));
  kernel<<<grid, static_cast<unsigned>(Block::kLanes * launch.warps), static_cast<size_t>(launch.shared_bytes),
           static_cast<cudaStream_t>(launch.stream)>>>(arguments...);
  return message_of(cudaGetLastError());
}

template <class Map, class T, int kWidth, bool kBackward>
__global__ void __launch_bounds__(Block::kLanes* kShortWarps, 1)
    short_kernel(const __grid_constant__ Map map, const __grid_constant__ KernelCall<T> call) {
  extern __shared__ __align__(128) unsigned char memory[];
  short_block<kWidth, kBackward>(map, call, Block(), static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), memory);
}

template <class Map, class Options, class T, bool kBackward>
const char* start_short_rows(const void* options, const KernelCall<T>& call, const Launch& launch) {
  return with_width(launch.width, [&]<int kWidth>(std::integral_constant<int, kWidth>) {
    return start(short_kernel<Map, T, kWidth, kBackward>, call.schedule.num_short, call.schedule.num_heads, launch,
                 types::map_of<Map, Options>(options), call);
  });
}

/// With more than so many blocks on a multiprocessor, there are too few registers.
constexpr int kLongBlocks[] = {3, 3, 2};  // by LongPass

template <class Map, class T, LongPass kPass>
__global__ void __launch_bounds__(Block::kLanes* kLongWarps, kLongBlocks[static_cast<int>(kPass)])
    long_kernel(const __grid_constant__ Map map, const __grid_constant__ KernelCall<T> call) {
  extern __shared__ __align__(128) unsigned char memory[];
  long_block<kPass>(map, call, Block(), static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), memory);
}

template <class Map, class Options, class T, LongPass kPass>
const char* start_long_rows(const void* options, const KernelCall<T>& call, const Launch& launch) {
  const int blocks = kPass == LongPass::kKeyGradients ? call.schedule.num_long_keys : call.schedule.num_long_tiles;
  return start(long_kernel<Map, T, kPass>, blocks, call.schedule.num_heads, launch, types::map_of<Map, Options>(options), call);
}

template <class Map, class T>
__global__ void __launch_bounds__(Block::kLanes* kQueryWarps, 1)
    one_query_kernel(const __grid_constant__ Map map, const __grid_constant__ OneQueryCall<T> call) {
  extern __shared__ __align__(128) unsigned char memory[];
  const Block block;
  OneQuery<Map, T, Block>(map, call, block, static_cast<int>(blockIdx.x), memory).run(static_cast<int>(gridDim.x));
}

template <class Map, class Options, class T>
const char* start_one_query(const void* options, const OneQueryCall<T>& call, int blocks, const Launch& launch) {
  return start(one_query_kernel<Map, T>, blocks, 1, launch, types::map_of<Map, Options>(options), call);
}

template <class Map, class Options, class T>
KernelFunctions<T> functions_for() {
  KernelFunctions<T> functions = {
      .forward =
          [](const void* options, const KernelCall<T>& call, const Launch& launch) {
            return start(forward_kernel<Map, T>, call.schedule.num_tiles, call.schedule.num_heads, launch,
                         types::map_of<Map, Options>(options), call);
          },
      .backward =
          [](const void* options, const KernelCall<T>& call, const Launch& launch) {
            const char* const error = start(backward_kernel<Map, T>, call.schedule.num_chunks, call.schedule.num_heads, launch,
                                            types::map_of<Map, Options>(options), call);
            if (error != nullptr) return error;
            const int64_t sums = int64_t{call.schedule.num_key_rows} * call.d_head;
            const auto blocks = static_cast<int>((sums + kThreads - 1) / kThreads);
            return start(sum_partials_kernel<T>, blocks, call.schedule.num_heads, {.warps = kWarps, .stream = launch.stream}, call);
          }};
  if constexpr (kHasShortRows<T, Block> && types::RunsOnRowsTogether<Map>) {
    functions.short_forward = start_short_rows<Map, Options, T, false>;
    functions.short_backward = start_short_rows<Map, Options, T, true>;
    functions.long_forward = start_long_rows<Map, Options, T, LongPass::kForward>;
    functions.long_query_gradients = start_long_rows<Map, Options, T, LongPass::kQueryGradients>;
    functions.long_key_gradients = start_long_rows<Map, Options, T, LongPass::kKeyGradients>;
  }
  functions.one_query = start_one_query<Map, Options, T>;
  return functions;
}

template <class Map, class Options, std::same_as<Block>>
TypeKernels kernels_for(const char* type) {
  return {.type = type, .for_float = functions_for<Map, Options, float>(), .for_bf16 = functions_for<Map, Options, Bf16>(), .rows = {}};
}

#endif

}  // namespace lacuna::cuda
