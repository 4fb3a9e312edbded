#pragma once

#include "attention/cpu/products.h"
#include "attention/cpu/task.h"
#include "attention/patterns/pattern.h"

// Always inlined: compiled for several instruction sets.
namespace lacuna::core {

/// Neighboring queries of a task, and which keys each of them sees.
template <int kRows>
struct QueryTile : TileSpan {
  int row_begin[kRows], row_count[kRows];  // the keys of each row; row_begin is counted from the tile's first key
  bool row_has_gaps[kRows];                // its keys are not contiguous
};

/// One row as a list of keys: element j belongs to row index[j] of k and v.
template <class S>
struct KeyList {
  int count;
  int32_t* index;
  S *weights, *scores, *factors;  // scores and factors null if not needed
};

/// Prefetches the list's rows of the keys and values that query i sees.
template <class S>
[[gnu::always_inline]] inline void prefetch_rows(const Task<S>& task, int i, const KeyList<S>& list, int d_head) {
  constexpr int kInLine = 64 / static_cast<int>(sizeof(S));
  const Rows<const S> keys = task.keys_of(i), values = task.values_of(i);
  for (int j = 0; j < list.count; ++j)
    for (int c = 0; c < d_head; c += kInLine) {
      __builtin_prefetch(keys.row(list.index[j]) + c);
      __builtin_prefetch(values.row(list.index[j]) + c);
    }
}

/// Rows of scores that will become weights in one go.
template <class S, int kMost>
struct PendingRows {
  types::RowPlace<S> places[kMost];
  int count = 0;
};

/// Returns the keys that the tile's rows see, summed over its rows.
template <int kRows>
[[gnu::always_inline]] inline int keys_seen(const QueryTile<kRows>& tile) {
  int seen = 0;
  for (int r = 0; r < tile.rows; ++r) seen += tile.row_count[r];
  return seen;
}

/// Returns true if the tile's products are worth their work: its rows see runs of keys, or a good part of all its keys.
template <class S, int kRows>
[[gnu::always_inline]] inline bool is_dense(const Task<S>& task, const QueryTile<kRows>& tile) {
  constexpr int kLeastShare = 3;  // one key in so many must be seen
  if (task.slots != nullptr) return false;
  if (task.rows_alike) return true;
  if (task.queries < 2) return false;
  bool has_gaps = false;
  for (int r = 0; r < tile.rows; ++r) has_gaps = has_gaps || tile.row_has_gaps[r];
  return !has_gaps || keys_seen(tile) * kLeastShare >= tile.rows * tile.width;
}

/// Returns the tile of `most_rows` from query `first` on, or of the rest; its keys begin at a multiple of `first_keys`.
template <int kRows, class S>
[[gnu::always_inline]] inline QueryTile<kRows> tile_from(const Task<S>& task, int first, int most_rows, int first_keys) {
  QueryTile<kRows> tile;
  tile.first = first;
  tile.rows = task.queries - first < most_rows ? task.queries - first : most_rows;
  int begin = task.keys, end = 0;
  for (int r = 0; r < tile.rows; ++r) {
    const int32_t segment = task.first_segment[first + r], segments = task.first_segment[first + r + 1] - segment;
    tile.row_begin[r] = segments > 0 ? task.segments[segment].begin : 0;
    tile.row_count[r] = 0;
    tile.row_has_gaps[r] = segments > 1 || (segments == 1 && task.segments[segment].stride != 1);
    for (int32_t s = segment; s < segment + segments; ++s) {
      const KeySegment keys = task.segments[s];
      const int last = keys.begin + (keys.count - 1) * keys.stride;
      tile.row_count[r] += keys.count;
      begin = keys.begin < begin ? keys.begin : begin;
      end = last + 1 > end ? last + 1 : end;
    }
  }
  tile.begin = begin < end ? begin / first_keys * first_keys : 0;
  tile.width = begin < end ? end - tile.begin : 0;
  for (int r = 0; r < tile.rows; ++r) tile.row_begin[r] = tile.row_count[r] > 0 ? tile.row_begin[r] - tile.begin : 0;
  return tile;
}

/// Returns the next tile, for products P, from query `first` on: high where its rows see much the same keys, else low.
template <class P, class S>
[[gnu::always_inline]] inline QueryTile<P::kTile> next_tile(const Task<S>& task, int first) {
  constexpr int64_t kMostWaste = 8;  // one product in so many may be for a key that its row does not see
  const QueryTile<P::kTile> high = tile_from<P::kTile>(task, first, P::kTile, P::kFirstKeys);
  if (high.rows <= P::kLowTile) return high;
  const int64_t products = int64_t{high.rows} * high.width;
  const bool is_worth_it = (products - keys_seen(high)) * kMostWaste <= products;
  return is_worth_it ? high : tile_from<P::kTile>(task, first, P::kLowTile, P::kFirstKeys);
}

}  // namespace lacuna::core
