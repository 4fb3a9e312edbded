#pragma once

#include <cstdint>

#include "attention/rows/row_functions.h"

/// The work of the CPU core as plain data. The core is compiled once for each instruction set (core_simd.cpp.in,
/// core_bf16.cpp) and once for double (core_plain.cpp); only these structs and the functions of EntryPoints cross the
/// border between it and code compiled for any processor (run.cpp).
namespace lacuna {

struct KeySegment;
class AttentionDropout;

namespace core {

/// The constants of an attention call, which its tasks share.
template <class S>
struct CallConstants {
  int d_head;
  S scale;                      ///< scores = scale * q.k
  types::RowFunctions<S> rows;  ///< the attention type's forward and backward pass on a row
  const void* options;          ///< the type's own struct, for `rows`
  bool sparse;                  ///< weights of 0 are many, and their keys get no gradient
  bool needs_scores;            ///< the backward pass of a row reads its scores
  bool uses_positions;          ///< rows read the positions of keys
  bool training;
  int num_numbers;  ///< learned numbers that each row reads
};

/// Rows of numbers, `stride` elements from one's beginning to the next one's. Null data = there are none.
template <class T>
struct Rows {
  T* data = nullptr;
  int64_t stride = 0;

  [[gnu::always_inline]] T* row(int64_t i) const { return data + i * stride; }
  /// Returns the rows from row i on.
  [[gnu::always_inline]] Rows from(int64_t i) const { return {row(i), stride}; }
};

/// The rows of a task in bf16 tensors, as bits, for products that read and write bf16: then it has no rows of type S.
struct StoredTask {
  Rows<const uint16_t> q, k, v;
  Rows<uint16_t> context;                             ///< forward
  Rows<const uint16_t> context_gradient;              ///< backward
  Rows<uint16_t> q_gradient, k_gradient, v_gradient;  ///< backward
};

/// The memory in which the weights of a task's tiles, before dropout, are kept for the backward pass.
template <class S>
struct KeptRows {
  Rows<S> weights;         ///< with a stride of row_elements(keys), the core may compute in these rows, in whole tiles of kRows
  Rows<uint16_t> rounded;  ///< bf16 (as bits) in place of `weights`, where the products round them anyway
  static constexpr int64_t kRows = 16;         ///< memory is allocated for a multiple of so many rows of weights
  static constexpr int64_t kRoundedRows = 32;  ///< the same for rounded rows, which are written so many rows and keys at a time
};

/// Several heads in one task: query i is head i % count of row i / count of q. Their keys and values lie `k` and `v`
/// elements apart.
struct HeadSteps {
  int count = 1;
  int64_t q = 0, k = 0, v = 0, numbers = 0;  ///< elements from one head to the next
};

/// The attention of one sentence and head, or of all heads of some queries of a decoder's step: one pass, either way.
template <class S>
struct Task {
  int queries = 0, keys = 0;
  bool is_backward = false;
  bool rows_alike = false;  ///< a query's context must have the same bits whatever other queries there are

  // Which keys each query sees.
  int32_t first_position = 0;  ///< position of query 0
  int32_t position_step = 1;   ///< from one query to the next
  const int32_t* positions =
      nullptr;                     ///< of the keys, ascending; null = 0, 1, ... If given, segments run over its elements and slots is null
  const int32_t* slots = nullptr;  ///< rows of k and v by the key's position; null = 0, 1, ...
  const KeySegment* segments = nullptr;  ///< of query i: first_segment[i] to first_segment[i + 1]
  const int32_t* first_segment = nullptr;
  const AttentionDropout* dropout = nullptr;  ///< null = none

  // The rows that the task reads and writes, each contiguous over d_head.
  Rows<const S> q, k, v;
  HeadSteps heads;                     ///< more than one only in a forward pass with slots
  Rows<S> context;                     ///< forward: written
  Rows<const S> context_gradient;      ///< backward
  Rows<S> q_gradient;                  ///< backward: written
  Rows<S> k_gradient, v_gradient;      ///< backward: the task adds to them
  const StoredTask* stored = nullptr;  ///< the same rows in bf16; null = they are those above

  // What each row of weights has beside it.
  Rows<const S> numbers;          ///< CallConstants::num_numbers learned numbers for each row of q and each of its heads
  Rows<double> number_gradients;  ///< backward: the task adds to them
  Rows<S> kept_number;            ///< one for each query: written by the forward pass, read by the backward pass (RowContext::kept_number)
  KeptRows<S> kept_rows;

  const void* probe = nullptr;  ///< what `show` takes; null = rows are not shown
  void (*show)(const void* probe, int query, const S* weights, const KeySegment* segments, int num_segments) = nullptr;

  [[gnu::always_inline]] const S* query_row(int i) const { return q.row(i / heads.count) + i % heads.count * heads.q; }
  [[gnu::always_inline]] Rows<const S> keys_of(int i) const { return {k.data + i % heads.count * heads.k, k.stride}; }
  [[gnu::always_inline]] Rows<const S> values_of(int i) const { return {v.data + i % heads.count * heads.v, v.stride}; }
  [[gnu::always_inline]] const S* numbers_of(int i) const {
    return numbers.data == nullptr ? nullptr : numbers.row(i / heads.count) + i % heads.count * heads.numbers;
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
inline constexpr int64_t kMaxTileRows = 64;
/// The most rows of the tasks that forward_together takes at a time: enough to fill vectors, few enough for scores to
/// stay in the L1 cache.
inline constexpr int64_t kMaxRowsTogether = 32;

/// Scratch memory of one thread. `memory` holds that of the first of the tasks that run together, and then the others'.
template <class S>
struct Workspace {
  S* memory;
  int32_t* index;  ///< [rows, row]: key indices, one list for each row
  RowsOfKeys rows_of;
  int64_t row;   ///< elements from one row to the next: row_elements()
  int64_t rows;  ///< the most that a tile has: tile_rows()
};

/// Returns the elements of a Workspace row for at most max_keys keys; index lists need as many.
inline int64_t row_elements(int64_t max_keys) {
  return (max_keys + 31) / 32 * 32 + 32;
}
/// Returns Workspace::rows for tasks of at most max_queries queries.
inline int64_t tile_rows(int64_t max_queries) {
  constexpr int64_t kRows = KeptRows<float>::kRows;
  const int64_t rows = (max_queries + kRows - 1) / kRows * kRows;
  return rows < kMaxTileRows ? rows : kMaxTileRows;
}

/// The core as compiled for one instruction set.
template <class S>
struct EntryPoints {
  void (*forward)(const CallConstants<S>& call, const Task<S>& task, const Workspace<S>& workspace);
  void (*backward)(const CallConstants<S>& call, const Task<S>& task, const Workspace<S>& workspace);
  /// Returns the size of Workspace::memory for one task.
  int64_t (*memory_elements)(int64_t row, int64_t rows, int64_t d_head);
  /// Returns true if the products of such a task round their operands to bf16. It then reads bf16 rows as stored
  /// (StoredTask) if each query sees one run of keys, and keeps its weights rounded. Null = products never round.
  bool (*rounds)(int64_t queries, int64_t keys, bool rows_alike) = nullptr;
  /// The forward pass of several tasks of one tile each, with Task::rows_alike and at most kMaxRowsTogether rows in
  /// all: their rows of scores become weights in one go. Null = not available.
  void (*forward_together)(const CallConstants<S>& call, const Task<S>* tasks, int count, const Workspace<S>& workspace) = nullptr;
};

EntryPoints<float> core_avx2();
EntryPoints<float> core_avx512();
// These round the operands of most products to bf16:
EntryPoints<float> core_amx();
EntryPoints<float> core_avx512_bf16();
EntryPoints<double> core_plain();

}  // namespace core
}  // namespace lacuna
