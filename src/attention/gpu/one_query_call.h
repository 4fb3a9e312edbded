#pragma once

#include "attention/gpu/kernels.h"

namespace lacuna::cuda {

/// The most warps of a block.
inline constexpr int kQueryWarps = 8;

/// A learned number of each row and head: data[r * row + h * head].
struct NumberOfRows {
  const float* data;
  int64_t row, head;
};

/// The arguments of the kernel for one query a row (one_query.h), in device memory. T is float or Bf16; all arithmetic on rows is float.
template <class T>
struct OneQueryCall {
  int num_rows, num_heads, d_head;
  float scale;
  bool uses_positions;
  bool is_aligned;  ///< each row of k and v begins at 16 bytes and is a multiple of them
  int num_numbers;
  NumberOfRows numbers[kMaxNumbers];
  Matrix<const T> q;
  Matrix<T> k, v;
  Matrix<const T> new_k, new_v;  ///< of each row's newest key, which the kernel writes to its place in k and v; null = all are there
  Matrix<T> context;

  const int32_t* num_keys;   ///< [rows]; a query stands at its newest key
  const int32_t* first_key;  ///< [rows] of k and v; null where there are slots
  const int32_t* slots;      ///< [rows, slot_stride] rows of k and v; or null
  int64_t slot_stride;

  /// A query at position i sees segments first_segment[place + i] to first_segment[place + i + 1], where place is 0, or head *
  /// num_positions if each head has a pattern of its own. Null = it sees all keys.
  const KeySegment* segments;
  const int32_t* first_segment;
  int num_positions;
  bool has_patterns_of_heads;

  /// Rotary positions (kernels/rotation.h): queries and newest keys are turned; null = they are not.
  const float *cosines, *sines;  ///< [positions, d_head / 2]
  bool turns_neighbors;          ///< pair i is columns 2i and 2i + 1; false = i and i + d_head / 2

  int row_size;               ///< room for a row: the most keys of any
  unsigned char* row_memory;  ///< of each warp, where rows do not fit into shared memory; null = they do
};

/// The memory of a warp: its query in shared memory, and rows there or in the device's.
struct OneQueryMemory {
  float *q, *weights, *scratch, *positions;
  int32_t* keys;  ///< rows of k and v

  LACUNA_HD OneQueryMemory(unsigned char* shared, unsigned char* rows, int d_head, int row_size)
      : q(reinterpret_cast<float*>(shared)),
        weights(reinterpret_cast<float*>(rows != nullptr ? rows : shared + query_bytes(d_head))),
        scratch(weights + row_size),
        positions(scratch + 2 * int64_t{row_size}),
        keys(reinterpret_cast<int32_t*>(scratch + row_size)) {}

  LACUNA_HD static int64_t query_bytes(int d_head) { return int64_t{sizeof(float)} * d_head; }
  LACUNA_HD static int64_t row_bytes(int row_size, bool uses_positions) {
    return int64_t{sizeof(float)} * row_size * (uses_positions ? 4 : 3);
  }
  LACUNA_HD static int64_t shared_bytes(int d_head, int row_size, bool uses_positions, bool rows_are_shared) {
    return query_bytes(d_head) + (rows_are_shared ? row_bytes(row_size, uses_positions) : 0);
  }
};

}  // namespace lacuna::cuda
