#pragma once

#include <cstdint>

#include "attention/cpu/rows_ahead.h"
#include "attention/rows/row_functions.h"

/// The CPU core: one sentence and head at a time, in cache. Compiled once per instruction set (core_simd.cpp.in) and for double
/// (core_plain.cpp); only plain data crosses the border between them.
namespace lacuna {

struct KeySegment;
class AttentionDropout;

namespace core {

/// What all tasks of a call share.
template <class S>
struct Call {
  int d_head;
  S scale;
  types::RowFunctions<S> rows;
  const void* options;  ///< the attention type's own struct
  bool sparse, needs_scores, uses_positions, training;
  int num_numbers;

  // For types with a mask: the fields above belong to the base type, these to the mask.
  types::RowFunctions<S> mask_rows = {};
  const void* mask_options = nullptr;
  bool is_mask_pass = false;
  int64_t step = 0;
};

/// Rows of bf16 numbers, as their bits, `stride` elements from one to the next.
template <class Bits>
struct StoredRows {
  Bits* data;
  int64_t stride;
};
/// The rows of a task in bf16 tensors, for products that read bf16 directly. A task that has these has no rows in S.
struct StoredTask {
  StoredRows<const uint16_t> q, k, v, context_gradient;              ///< read; context_gradient in the backward pass only
  StoredRows<uint16_t> context, q_gradient, k_gradient, v_gradient;  ///< written: context by the forward pass, the others by the backward
};

/// The weights of a task's tiles, before dropout, that the forward pass keeps for the backward pass.
template <class S>
struct KeptRows {
  S* weights = nullptr;         ///< [queries, stride] or, with `counts`, the nonzero weights of one row after the other; null = none
  uint16_t* rounded = nullptr;  ///< [queries, stride] bf16 (as bits) in place of `weights`, where the products round them anyway
  int32_t* keys = nullptr;      ///< with `counts`: the key of each listed weight, counted from its tile's first key
  int32_t* counts = nullptr;    ///< [queries] number of listed weights in each row; -1 = the row is not kept
  int64_t room = 0;             ///< with `counts`: how many weights may be listed; behind them is room for one more vector
  int64_t stride = 0;  ///< without `counts`; if it is row_elements(keys), the core may compute in these rows, in whole tiles of kRows
  static constexpr int64_t kRows = 16;         ///< tiles have a multiple of so many rows
  static constexpr int64_t kRoundedRows = 32;  ///< the same for `rounded`, which is written so many rows, and so many keys, at a time
};

/// One sentence and head, or all heads of some queries of a decoder's step. Strides are between rows; rows are contiguous over d_head.
template <class S>
struct Task {
  int queries, keys;
  bool is_backward;            ///< which pass; fields marked "forward" or "backward" are set in that pass only
  bool rows_alike;             ///< a query's context must have the same bits whatever other queries there are
  int32_t first_position;      ///< of the first query
  int32_t position_step;       ///< from one query to the next
  const int32_t* positions;    ///< of the keys, ascending; null = 0, 1, ... If given, segments run over its elements, and slots is null
  const int32_t* slots;        ///< rows of k and v by the key's position; null = 0, 1, ...
  const KeySegment* segments;  ///< of query i: first_segment[i] to first_segment[i + 1]
  const int32_t* first_segment;
  const AttentionDropout* dropout;  ///< null = none

  const S *q, *k, *v;
  int64_t q_stride, k_stride, v_stride;
  int heads;  ///< heads in a row of q: query i is head i % heads of row i / heads. More than 1 only in a forward pass with slots
  int64_t q_step, k_step, v_step, numbers_step;  ///< from one of these heads to the next
  S* context;                                    ///< forward
  int64_t context_stride;
  const S* numbers;  ///< rows of Call::num_numbers, for each row of q and each of its heads
  int64_t numbers_stride;

  const S* context_gradient;  ///< backward, with context_stride
  S *q_gradient, *k_gradient, *v_gradient;
  int64_t q_gradient_stride, gradient_stride;  ///< the task writes q_gradient, but adds to k_gradient and v_gradient (gradient_stride)
  double* number_gradients;                    ///< the task adds to it
  int64_t number_gradients_stride;
  S* kept;  ///< [queries] numbers of the rows that the forward pass writes and the backward pass reads; null = none
  int64_t kept_stride;
  KeptRows<S> kept_rows;

  const void* probe;  ///< what `show` and `show_mask` take; null = rows are not shown
  void (*show)(const void* probe, int query, const S* weights, const KeySegment* segments, int num_segments);
  const StoredTask* stored;  ///< null = the task's rows are those above

  // For types with a mask, whose k_gradient and v_gradient may be null. mask_q_gradient and mask_k_gradient, laid out like those of q and
  // k, are set in the mask pass.
  const S *mask_q, *mask_k;
  int64_t mask_q_stride, mask_k_stride;
  S *mask_q_gradient, *mask_k_gradient;
  S* results;  ///< [queries] rows of what the mask pass computes beside the weights (types::calibrated::Result); null = not wanted
  const S* result_gradients;
  int64_t results_stride;
  void (*show_mask)(const void* probe, int query, const S* base, const S* mask, const KeySegment* segments, int num_segments);

  // Of query i:
  [[gnu::always_inline]] const S* query_row(int i) const { return q + i / heads * q_stride + i % heads * q_step; }
  [[gnu::always_inline]] const S* key_rows(int i) const { return k + i % heads * k_step; }
  [[gnu::always_inline]] const S* value_rows(int i) const { return v + i % heads * v_step; }
  [[gnu::always_inline]] const S* numbers_of(int i) const {
    return numbers == nullptr ? nullptr : numbers + i / heads * numbers_stride + i % heads * numbers_step;
  }
  /// Prefetches these rows of the keys and values that query i sees.
  [[gnu::always_inline]] void fetch_rows(int i, const int32_t* rows, int count, int d_head) const {
    constexpr int kInLine = 64 / static_cast<int>(sizeof(S));
    const S *const keys_of_head = key_rows(i), *const values_of_head = value_rows(i);
    for (int j = 0; j < count; ++j)
      for (int c = 0; c < d_head; c += kInLine) {
        __builtin_prefetch(keys_of_head + rows[j] * k_stride + c);
        __builtin_prefetch(values_of_head + rows[j] * v_stride + c);
      }
  }
};

/// Which rows of a tile, up to 64, have weight at a key: bit r of `low` says it of row r, of `high` of row 32 + r.
struct RowsOfKeys {
  int32_t *low, *high;

  [[gnu::always_inline]] uint64_t operator[](int key) const {
    return static_cast<uint32_t>(low[key]) | uint64_t{static_cast<uint32_t>(high[key])} << 32;
  }
};

/// The most rows that a tile may have.
inline constexpr int64_t kMostRows = 64;
/// The most rows of the tasks that forward_together takes at a time: enough to fill vectors, few enough for scores to stay in the L1 cache.
inline constexpr int64_t kRowsTogether = 32;

/// Scratch memory of one thread. For tasks that run together, `memory` holds the first task's and then that of each other one.
template <class S>
struct Workspace {
  S* memory;
  int32_t* index;  ///< [rows, row]: key indices, one list for each row
  RowsOfKeys rows_of;
  int64_t row;   ///< elements from one row to the next: row_elements()
  int64_t rows;  ///< the most that a tile has: tile_rows()
  S* mask_memory = nullptr;
  RowsAhead* ahead = nullptr;  ///< what to prefetch for the next task
};

/// Elements of a Workspace row for at most max_keys keys; index lists need as many.
inline int64_t row_elements(int64_t max_keys) {
  return (max_keys + 31) / 32 * 32 + 32;
}
/// Rows of a Workspace (Workspace::rows) for tasks of at most max_queries queries.
inline int64_t tile_rows(int64_t max_queries) {
  constexpr int64_t kRows = KeptRows<float>::kRows;
  const int64_t rows = (max_queries + kRows - 1) / kRows * kRows;
  return rows < kMostRows ? rows : kMostRows;
}

template <class S>
struct Functions {
  void (*forward)(const Call<S>& call, const Task<S>& task, const Workspace<S>& workspace);
  void (*backward)(const Call<S>& call, const Task<S>& task, const Workspace<S>& workspace);
  void (*masked_forward)(const Call<S>& call, const Task<S>& task, const Workspace<S>& workspace);
  void (*masked_backward)(const Call<S>& call, const Task<S>& task, const Workspace<S>& workspace);
  int64_t (*memory_elements)(int64_t row, int64_t rows, int64_t d_head);       ///< size of Workspace::memory for one task
  int64_t (*mask_memory_elements)(int64_t row, int64_t rows, int64_t d_head);  ///< size of Workspace::mask_memory, for types with a mask
  /// True if the products of a task with so many queries and keys round their operands to bf16. Such a task reads bf16 rows as they are
  /// stored (StoredTask) if each query sees one run of keys, and keeps its weights rounded. Null = products never round.
  bool (*rounds)(int64_t queries, int64_t keys, bool rows_alike) = nullptr;
  /// The forward pass of several tasks of one tile each, with Task::rows_alike and at most kRowsTogether rows in all: their rows of scores
  /// become weights in one go. Null = not available.
  void (*forward_together)(const Call<S>& call, const Task<S>* tasks, int count, const Workspace<S>& workspace) = nullptr;
};

Functions<float> functions_avx2();
Functions<float> functions_avx512();
// These round the operands of most products to bf16:
Functions<float> functions_amx();
Functions<float> functions_avx512_bf16();
Functions<double> functions_plain();

}  // namespace core
}  // namespace lacuna
