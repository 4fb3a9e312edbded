#pragma once

#include "attention/gpu/row_keys.h"

namespace lacuna::cuda {

// Elements from one row of a matrix in shared memory to the next. Some bytes more than the row: rows then begin in different banks.

template <class T>
LACUNA_HD constexpr int row_stride(int width) {
  return width + static_cast<int>(16 / sizeof(T));
}
template <class T>
LACUNA_HD constexpr int left_stride() {
  return row_stride<T>(kTile);
}
template <class T>
LACUNA_HD constexpr int right_stride() {
  return row_stride<T>(kColumns);
}
inline constexpr int kSumStride = row_stride<float>(kColumns);
/// Task::stride is so much more than the widest tile.
inline constexpr int kStridePadding = 8;

/// What a block keeps in shared memory.
template <class T>
struct Memory {
  T *q, *context_gradient;             // [kTile, row_stride(width)]: the tile's rows, 0 beyond
  float *weights, *scores, *gradient;  // [tile_rows, stride]
  RowSegments* segments;               // [kTile]

  // Of each warp.
  T* left;                                                                  // [2, kTile, left_stride]: factors of products, two in turn
  T* right;                                                                 // [2, kTile, right_stride]: likewise
  float* product;                                                           // [kTile, kTile], where a tile has fewer rows
  float *scratch, *positions, *list_weights, *list_scores, *list_gradient;  // [stride]

  int64_t bytes = 0;  ///< of all

  /// `begin` null = only counts the bytes.
  LACUNA_HD Memory(unsigned char* begin, const Call<T>& call, const Task& task, int warp, int warps, bool is_backward)
      : begin_(begin), warp_(warp) {
    const bool has_gaps = task.has_gaps != 0;
    take(q, kTile * row_stride<T>(call.width), true);
    take(context_gradient, kTile * row_stride<T>(call.width), is_backward);
    const int64_t rows = int64_t{task.tile_rows} * task.stride;
    take_each(left, 2 * kTile * left_stride<T>(), true, warps);
    take_each(right, kRight, true, warps);
    take_each(product, kTile * kTile, task.tile_rows < kTile, warps);
    take(weights, rows, true);
    take(scores, rows, is_backward && call.needs_scores);
    take(gradient, rows, is_backward);
    take(segments, kTile, true);
    take_each(scratch, task.stride, true, warps);
    take_each(positions, task.stride, call.uses_positions, warps);
    take_each(list_weights, task.stride, has_gaps, warps);
    take_each(list_scores, task.stride, has_gaps && is_backward && call.needs_scores, warps);
    take_each(list_gradient, task.stride, has_gaps && is_backward, warps);
  }

  /// [kTile, kSumStride] of a warp, in the place of its `right`.
  LACUNA_HD float* sums(int warp) const { return reinterpret_cast<float*>(right + (warp - warp_) * kRight); }

 private:
  static constexpr int64_t kRight = 2 * kTile * right_stride<T>();
  static_assert(kTile * kSumStride * sizeof(float) <= kRight * sizeof(T));

  template <class X>
  LACUNA_HD void take(X*& part, int64_t elements, bool is_needed) {
    take_each(part, elements, is_needed, 0);
  }
  /// warps 0 = one for all
  template <class X>
  LACUNA_HD void take_each(X*& part, int64_t elements, bool is_needed, int warps) {
    const int64_t each = elements * static_cast<int64_t>(sizeof(X));
    part = is_needed && begin_ != nullptr ? reinterpret_cast<X*>(begin_ + bytes + (warps > 0 ? each * warp_ : 0)) : nullptr;
    if (is_needed) bytes += each * (warps > 0 ? warps : 1);
  }

  unsigned char* begin_;
  int warp_;
};

}  // namespace lacuna::cuda
