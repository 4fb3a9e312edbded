#pragma once

#include "attention/gpu/row_keys.h"

namespace lacuna::cuda {

// Elements from one row of a matrix in shared memory to the next. Padded, so that rows begin in different banks.

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
/// SentenceTask::stride is the width of the widest tile plus this.
inline constexpr int kStridePadding = 8;

/// The layout of a block's shared memory.
template <class T>
struct SharedMemory {
  T *q, *context_gradient;             // [kTile, row_stride(width)]: the tile's rows, 0 beyond
  float *weights, *scores, *gradient;  // [tile_rows, stride]
  RowSegments* segments;               // [kTile]

  // Of each warp.
  T* left;                                                                  // [2, kTile, left_stride]: factors of products, two in turn
  T* right;                                                                 // [2, kTile, right_stride]: the other factors
  float* product;                                                           // [kTile, kTile], where a tile has fewer rows
  float *scratch, *positions, *list_weights, *list_scores, *list_gradient;  // [stride]

  int64_t bytes = 0;  ///< of all

  /// Lays the parts out from `begin` on; if it is null, only counts the bytes.
  LACUNA_HD SharedMemory(unsigned char* begin, const KernelCall<T>& call, const SentenceTask& task, int warp, int warps, bool is_backward)
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

  /// The sums [kTile, kSumStride] of a warp, which take the place of its `right`.
  LACUNA_HD float* sums(int warp) const { return reinterpret_cast<float*>(right + (warp - warp_) * kRight); }

 private:
  static constexpr int64_t kRight = 2 * kTile * right_stride<T>();
  static_assert(kTile * kSumStride * sizeof(float) <= kRight * sizeof(T));

  template <class X>
  LACUNA_HD void take(X*& part, int64_t elements, bool is_needed) {
    take_each(part, elements, is_needed, 0);
  }
  /// Takes a part for each warp; a shared one if `warps` is 0.
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
