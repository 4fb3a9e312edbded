#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "attention/patterns/pattern.h"
#include "attention/rows/row_functions.h"

/// The border between tensors (run.cpp) and the kernels of each type (kernel.h): plain data and plain functions, so that neither side reads
/// the other's headers.
namespace lacuna::cuda {

/// A bfloat16, the upper half of a float, laid out as LibTorch's and CUDA's own types.
struct Bf16 {
  uint16_t bits;

  Bf16() = default;
  /// Rounds to the nearest, ties to even.
  LACUNA_HD explicit Bf16(float x) : bits(rounded(std::bit_cast<uint32_t>(x))) {}
  LACUNA_HD operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

 private:
  LACUNA_HD static uint16_t rounded(uint32_t word) {
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    return static_cast<uint16_t>(is_nan ? (word >> 16) | 0x40u : (word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
};

/// Queries and keys of a tile: the size of a tensor core's matrices.
inline constexpr int kTile = 16;
/// Columns of d_head in a tile.
inline constexpr int kColumns = 4 * kTile;
/// The most warps of a block.
inline constexpr int kWarps = 4;
/// The most learned numbers of a row.
inline constexpr int kMaxNumbers = 4;

/// A sentence, or a part of one (AttentionPart), whose keys may be listed.
struct SentenceTask {
  int64_t sentence_id;
  int32_t first_query, query_step;  ///< rows of q
  int32_t first_position;           ///< of the first query; they are query_step apart
  int32_t keys, first_key;          ///< rows of k and v, or where slots are given, of these
  int32_t key_positions;            ///< where the positions of its keys begin in BlockSchedule::key_positions; -1 = 0, 1, ...
  int32_t first_segment;            ///< where its queries begin in BlockSchedule::first_segment
  int32_t tile_rows, stride;        ///< rows worked on together, and floats from one to the next
  int32_t has_gaps;                 ///< some query's keys do not lie side by side
  int32_t is_long;                  ///< its rows lie in the device's memory: none fits into a block's
};

/// A tile of a task's queries, and the range of keys that any of them sees. `begin` and `width` are multiples of kTile.
struct QueryTile {
  int32_t task, first, rows, begin, width;
};

/// Tiles that one block processes in the backward pass, one after the other. The gradients of their keys, `begin` to `end`, are summed in
/// partial rows that belong to this chunk alone.
struct Chunk {
  int32_t first_tile, num_tiles, begin, end;
  int32_t first_partial;  ///< of k_partial and v_partial
};

/// A sentence whose rows of scores are held in registers (short_rows.h).
struct ShortSentence {
  int64_t sentence_id;
  int32_t first_query, queries;  ///< rows of q
  int32_t first_position;        ///< of the first query
  int32_t first_key, keys;       ///< rows of k and v, or where slots are given, of these
  int32_t first_segment;         ///< where its queries begin in BlockSchedule::first_segment
};

/// The most keys that such rows have: each is a kernel of its own. With more, there are too few registers.
inline constexpr int kShortWidths[] = {32, 64, 128};
inline constexpr int kMostShortKeys = 128;
/// The most warps of a block that works on such a sentence.
inline constexpr int kShortWarps = 8;

/// Keys of a long sentence that a warp takes at a time.
inline constexpr int kKeyGroup = 2 * kTile;
/// Warps of a block that works on long rows (long_rows.h), however long: in which order sums are added up depends on it.
inline constexpr int kLongWarps = 4;
/// Keys whose gradients a block finds.
inline constexpr int kLongKeys = kLongWarps * kTile;
/// The most results of passes over a row that a row map's weights may need, and as many that its gradients may.
inline constexpr int kRowResults = 4;
/// The most sums that a row map may find in one pass.
inline constexpr int kMostRowSums = 4;

/// A sentence whose rows are long: each query sees one run of keys, or none.
struct LongSentence {
  int64_t sentence_id;
  int32_t first_query, queries;  ///< rows of q
  int32_t first_position;        ///< of the first query
  int32_t first_key, keys;       ///< rows of k and v, or where slots are given, of these
  int32_t first_segment;         ///< where its queries begin in BlockSchedule::first_segment
  int32_t first_block;           ///< where its blocks begin in KernelCall::has_weight: [groups of keys, tiles of queries]
};

/// kTile queries of a long sentence, from `first` on, and the range of groups of keys that any of them sees, one group at least.
struct LongTile {
  int32_t sentence, first, begin, end;
};

/// kLongKeys keys of a long sentence, from `first` on, and the range of tiles of queries, some of which see some of them.
struct LongKeys {
  int32_t sentence, first, begin, end;
};

/// What the gradients of keys need to know of a row.
struct LongRowRecord {
  float of_weights[kRowResults], of_gradients[kRowResults];  ///< results of passes over it
  int32_t begin, end;                                        ///< the keys that it sees
  int32_t unused[2];                                         ///< so that parts of 16 bytes can be copied
  float numbers[kMaxNumbers];
};
static_assert(sizeof(LongRowRecord) % 16 == 0);

/// The work of all heads with the same pattern, in device memory.
struct BlockSchedule {
  const SentenceTask* tasks;
  const QueryTile* tiles;
  const Chunk* chunks;
  const KeySegment* segments;  ///< of a task's query i: first_segment[task.first_segment + i] to the next; over its keys
  const int32_t* first_segment;
  const int32_t* key_positions;
  const int32_t* heads;
  const int32_t* slots;  ///< or null
  int num_tiles, num_chunks, num_heads;

  const ShortSentence* short_sentences;  ///< of one launch
  int num_short;

  const LongSentence* long_sentences;
  const LongTile* long_tiles;  ///< of one launch
  const LongKeys* long_keys;
  int num_long_tiles, num_long_keys, num_long_blocks;

  /// Backward: key row r gets the sum of the partial rows sources[first_source[r]] to sources[first_source[r + 1]].
  const int32_t *first_source, *sources;
  int num_key_rows, num_partials;
};

/// A matrix with heads: head h of row r begins at data + r * row + h * head and is contiguous.
template <class T>
struct Matrix {
  T* data;
  int64_t row, head;
};

/// The arguments of a kernel: an attention call in device memory. T is float or Bf16; all arithmetic on rows is float.
template <class T>
struct KernelCall {
  BlockSchedule schedule;
  int num_heads, d_head, width;  ///< width: d_head in whole tiles
  float scale;
  bool sparse, needs_scores, uses_positions, training;
  bool is_aligned;  ///< each row of q, k, v and the context's gradient begins at 16 bytes and is a multiple of them
  int num_numbers;
  const float* numbers;  ///< [Tq, H, num_numbers]
  Matrix<const T> q, k, v;
  Matrix<T> context;

  uint64_t dropout_key;  ///< of the call
  uint32_t dropout_threshold;
  float dropout_scale;

  Matrix<const T> context_gradient;  ///< backward
  Matrix<T> q_gradient, k_gradient, v_gradient;
  float *k_partial, *v_partial;  ///< [heads of the schedule, num_partials, width], zero at first
  unsigned char* row_memory;     ///< row_bytes for each block whose rows lie in the device's memory; null = they lie in the block's
  int64_t row_bytes;
  double* number_gradients;  ///< [Tq, H, num_numbers], zero at first

  float* row_results;  ///< of long rows: [Tq, H, kRowResults], what LongRowRecord::of_weights says
  unsigned char*
      has_weight;          ///< [heads of the schedule, BlockSchedule::num_long_blocks]: 0 where no query of a tile weighs a key of a group
  LongRowRecord* records;  ///< backward: [Tq, H]
};

/// The launch parameters of a kernel.
struct Launch {
  int warps;             ///< of each block
  int width = 0;         ///< of short rows, one of kShortWidths
  int shared_bytes = 0;  ///< shared memory of each block
  void* stream = nullptr;
};

/// Launches kernels and returns null, or an error message.
template <class T>
using KernelFunction = const char* (*)(const void* options, const KernelCall<T>& call, const Launch& launch);

/// The arguments of the kernel for one query a row: one_query_call.h.
template <class T>
struct OneQueryCall;

/// The host functions of a type: for tiles and chunks, for short sentences and for long ones (null: there are no such kernels), and for one
/// query a row.
template <class T>
struct KernelFunctions {
  KernelFunction<T> forward, backward;
  KernelFunction<T> short_forward = nullptr, short_backward = nullptr;
  KernelFunction<T> long_forward = nullptr, long_query_gradients = nullptr, long_key_gradients = nullptr;
  const char* (*one_query)(const void* options, const OneQueryCall<T>& call, int blocks, const Launch& launch) = nullptr;
};

/// The kernels of one type.
struct TypeKernels {
  const char* type;
  KernelFunctions<float> for_float;
  KernelFunctions<Bf16> for_bf16;
  types::RowFunctions<float> rows;  ///< emulated kernels only: a single row, for tests
};

/// The kernels of every type in the list of CMakeLists.txt, compiled for the GPU.
std::span<const TypeKernels> all_gpu_kernels();
std::span<const TypeKernels> all_emulated_kernels();  ///< the same code for the CPU, one thread a block, for tests
std::span<const TypeKernels> all_threaded_kernels();  ///< the same with two warps a block: of four threads, or 32 for short rows in bf16

/// Returns the bytes of shared memory that a block may use on the current GPU. Throws MachineError in CUDA's words.
int gpu_shared_bytes();

}  // namespace lacuna::cuda
