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

/// The layout of a block's shared memory. The rows of a long task, and what is as long, lie in the device's memory instead.
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

  int64_t bytes = 0, row_bytes = 0;  ///< of all in shared memory, and of those in the device's

  /// Lays the parts out from `begin` on, and those in the device's memory from `rows` on; where these are null, only counts the bytes.
  LACUNA_HD SharedMemory(unsigned char* begin, unsigned char* rows, const KernelCall<T>& call, const SentenceTask& task, int warp,
                         int warps, bool is_backward)
      : shared_(begin), memory_(rows), warp_(warp) {
    const bool has_gaps = task.has_gaps != 0;
    const bool is_long = task.is_long != 0;
    take(false, q, kTile * row_stride<T>(call.width), true);
    take(false, context_gradient, kTile * row_stride<T>(call.width), is_backward);
    const int64_t elements = int64_t{task.tile_rows} * task.stride;
    take_each(false, left, 2 * kTile * left_stride<T>(), true, warps);
    take_each(false, right, kRight, true, warps);
    take_each(false, product, kTile * kTile, task.tile_rows < kTile, warps);
    take(is_long, weights, elements, true);
    take(is_long, scores, elements, is_backward && call.needs_scores);
    take(is_long, gradient, elements, is_backward);
    take(false, segments, kTile, true);
    take_each(is_long, scratch, task.stride, true, warps);
    take_each(is_long, positions, task.stride, call.uses_positions, warps);
    take_each(is_long, list_weights, task.stride, has_gaps, warps);
    take_each(is_long, list_scores, task.stride, has_gaps && is_backward && call.needs_scores, warps);
    take_each(is_long, list_gradient, task.stride, has_gaps && is_backward, warps);
  }

  /// The sums [kTile, kSumStride] of a warp, which take the place of its `right`.
  LACUNA_HD float* sums(int warp) const { return reinterpret_cast<float*>(right + (warp - warp_) * kRight); }

 private:
  static constexpr int64_t kRight = 2 * kTile * right_stride<T>();
  static_assert(kTile * kSumStride * sizeof(float) <= kRight * sizeof(T));

  template <class X>
  LACUNA_HD void take(bool in_memory, X*& part, int64_t elements, bool is_needed) {
    take_each(in_memory, part, elements, is_needed, 0);
  }
  /// Takes a part for each warp, in the device's memory or in shared memory; one for all warps if `warps` is 0.
  template <class X>
  LACUNA_HD void take_each(bool in_memory, X*& part, int64_t elements, bool is_needed, int warps) {
    const int64_t each = elements * static_cast<int64_t>(sizeof(X)), all = each * (warps > 0 ? warps : 1);
    unsigned char* const begin = in_memory ? memory_ : shared_;
    const int64_t offset = (in_memory ? row_bytes : bytes) + (warps > 0 ? each * warp_ : 0);
    part = is_needed && begin != nullptr ? reinterpret_cast<X*>(begin + offset) : nullptr;
    row_bytes += is_needed && in_memory ? all : 0;
    bytes += is_needed && !in_memory ? all : 0;
  }

  unsigned char *shared_, *memory_;
  int warp_;
};

}  // namespace lacuna::cuda
