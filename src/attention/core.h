#pragma once

#include <cstdint>

#include "attention/row_functions.h"
#include "attention/rows_ahead.h"

/// The CPU core: one sentence and head at a time, in cache. Compiled once per instruction set (core_simd.cpp) and for double
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
  const void* options;  ///< of the type
  bool sparse, needs_scores, uses_positions, training;
  int num_numbers;

  // Types with a mask; the above is their base's.
  types::RowFunctions<S> mask_rows = {};
  const void* mask_options = nullptr;
  bool is_mask_pass = false;
  int64_t step = 0;
};

/// Rows of bf16, as bits, `stride` apart.
template <class Bits>
struct StoredRows {
  Bits* data;
  int64_t stride;
};
/// A task's rows where the tensors have them in bf16, for products that take these as they are: then the task has no others.
struct StoredTask {
  StoredRows<const uint16_t> q, k, v, context_gradient;              ///< the last backward only
  StoredRows<uint16_t> context, q_gradient, k_gradient, v_gradient;  ///< written: the first forward, the others backward
};

/// The weights of a task's tiles, before dropout, that the forward pass leaves to the backward pass.
template <class S>
struct KeptRows {
  S* weights = nullptr;         ///< [queries, stride] or, with `counts`, those that are not zero, one row after the other; null = none
  uint16_t* rounded = nullptr;  ///< [queries, stride] of bf16, as bits, instead, of tasks whose products round them anyway
  int32_t* keys = nullptr;      ///< with `counts`: of these, counted from their tile's first
  int32_t* counts = nullptr;    ///< [queries] of these; -1 = the row is not kept
  int64_t room = 0;             ///< for so many of these; a whole vector may be written behind them
  int64_t stride = 0;  ///< without counts; row_elements(keys) = rows that the core may work on where they are, in whole tiles of kRows
  static constexpr int64_t kRows = 16;         ///< of which every tile has a multiple
  static constexpr int64_t kRoundedRows = 32;  ///< likewise; rounded rows are written so many at a time, and so many keys
};

/// One sentence and head, or all heads of some queries of a decoder's step. Strides are between rows; rows are contiguous over d_head.
template <class S>
struct Task {
  int queries, keys;
  bool is_backward;            ///< forward: the fields below that say so are not there, and the other way round
  bool rows_alike;             ///< a query's context has the same bits whatever other queries there are
  int32_t first_position;      ///< of the first query
  int32_t position_step;       ///< from one query to the next
  const int32_t* positions;    ///< of the keys, ascending; null = 0, 1, ... If given, segments run over its elements, and slots is null
  const int32_t* slots;        ///< rows of k and v by the key's position; null = 0, 1, ...
  const KeySegment* segments;  ///< of query i: first_segment[i] to first_segment[i + 1]
  const int32_t* first_segment;
  const AttentionDropout* dropout;  ///< null = none

  const S *q, *k, *v;
  int64_t q_stride, k_stride, v_stride;
  int heads;  ///< of a row of q: query i is head i % heads of row i / heads. More than 1 in the forward pass by slots only
  int64_t q_step, k_step, v_step, numbers_step;  ///< from one of these heads to the next
  S* context;                                    ///< forward
  int64_t context_stride;
  const S* numbers;  ///< rows of Call::num_numbers, for each row of q and each of its heads
  int64_t numbers_stride;

  const S* context_gradient;  ///< backward, with context_stride
  S *q_gradient, *k_gradient, *v_gradient;
  int64_t q_gradient_stride, gradient_stride;  ///< of k and v, to which is added; q's is written
  double* number_gradients;                    ///< to which is added
  int64_t number_gradients_stride;
  S* kept;  ///< [queries] numbers of the rows that the forward pass writes and the backward pass reads; null = none
  int64_t kept_stride;
  KeptRows<S> kept_rows;

  const void* probe;  ///< null = nobody looks
  void (*show)(const void* probe, int query, const S* weights, const KeySegment* segments, int num_segments);
  const StoredTask* stored;  ///< null = the rows above

  // Types with a mask. Theirs may have no k_gradient or v_gradient; mask_q_gradient and mask_k_gradient, laid out like q's and k's, are
  // there in the mask pass.
  const S *mask_q, *mask_k;
  int64_t mask_q_stride, mask_k_stride;
  S *mask_q_gradient, *mask_k_gradient;
  S* results;  ///< [queries] rows of what a row gives beside its weights; null = not wanted
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
  /// Asks memory for rows of its keys and values, wherever they lie.
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

/// Of a tile at most.
inline constexpr int64_t kMostRows = 64;
/// Of tasks that go together: what fills vectors, and leaves scores in the first cache.
inline constexpr int64_t kRowsTogether = 32;

/// Scratch memory of one thread; of tasks that go together, `memory` is that of the first and the others' follows.
template <class S>
struct Workspace {
  S* memory;
  int32_t* index;  ///< `rows` rows
  RowsOfKeys rows_of;
  int64_t row;   ///< elements of a row with room for whole vectors
  int64_t rows;  ///< of a tile at most
  S* mask_memory = nullptr;
  RowsAhead* ahead = nullptr;  ///< of the task that comes next
};

/// Workspace::row of a task with so many keys; and the elements of each list of integers there, if none has more.
inline int64_t row_elements(int64_t max_keys) {
  return (max_keys + 31) / 32 * 32 + 32;
}
/// Workspace::rows of tasks with so many queries at most.
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
  int64_t (*memory_elements)(int64_t row, int64_t rows, int64_t d_head);       ///< of Workspace::memory
  int64_t (*mask_memory_elements)(int64_t row, int64_t rows, int64_t d_head);  ///< of Workspace::mask_memory, where it is used
  /// True of tasks with so many queries and keys whose products round their factors: these take rows as stored if each query sees one run
  /// of keys, and keep weights rounded. Null = none do.
  bool (*rounds)(int64_t queries, int64_t keys, bool rows_alike) = nullptr;
  /// Tasks that have a tile each of `rows_alike` rows, kRowsTogether in all at most, which are weighed together; null = none.
  void (*forward_together)(const Call<S>& call, const Task<S>* tasks, int count, const Workspace<S>& workspace) = nullptr;
};

Functions<float> functions_avx2();
Functions<float> functions_avx512();
// Factors of most products rounded to bf16:
Functions<float> functions_amx();
Functions<float> functions_avx512_bf16();
Functions<double> functions_plain();

}  // namespace core
}  // namespace lacuna
