#pragma once

#include "attention/cuda/kernels.h"

namespace lacuna::cuda {

/// What a block keeps in shared memory.
template <class T>
struct Memory {
  T *q, *context_gradient;             // [kTile, width]: the tile's rows, 0 beyond
  float *weights, *scores, *gradient;  // [tile_rows, stride]

  // Of each warp.
  T *left, *right;                                                          // [kTile, kTile]: factors of a product
  float* product;                                                           // [kTile, kTile]
  float *scratch, *positions, *list_weights, *list_scores, *list_gradient;  // [stride]

  int64_t bytes = 0;  ///< of all

  /// `begin` null = only counts the bytes.
  LACUNA_HD Memory(unsigned char* begin, const Call<T>& call, const Task& task, int warp, int warps, bool is_backward) : begin_(begin) {
    constexpr int64_t kSquare = kTile * kTile;
    const bool has_gaps = task.has_gaps != 0;
    take(q, kTile * call.width, true);
    take(context_gradient, kTile * call.width, is_backward);
    const int64_t rows = int64_t{task.tile_rows} * task.stride;
    take_each(left, kSquare, true, warp, warps);
    take_each(right, kSquare, true, warp, warps);
    take_each(product, kSquare, true, warp, warps);
    take(weights, rows, true);
    take(scores, rows, is_backward && call.needs_scores);
    take(gradient, rows, is_backward);
    take_each(scratch, task.stride, true, warp, warps);
    take_each(positions, task.stride, call.uses_positions, warp, warps);
    take_each(list_weights, task.stride, has_gaps, warp, warps);
    take_each(list_scores, task.stride, has_gaps && is_backward && call.needs_scores, warp, warps);
    take_each(list_gradient, task.stride, has_gaps && is_backward, warp, warps);
  }

 private:
  template <class X>
  LACUNA_HD void take(X*& part, int64_t elements, bool is_needed) {
    take_each(part, elements, is_needed, 0, 1);
  }
  template <class X>
  LACUNA_HD void take_each(X*& part, int64_t elements, bool is_needed, int warp, int warps) {
    const int64_t each = elements * static_cast<int64_t>(sizeof(X));
    part = is_needed && begin_ != nullptr ? reinterpret_cast<X*>(begin_ + bytes + each * warp) : nullptr;
    if (is_needed) bytes += each * warps;
  }

  unsigned char* begin_;
};

}  // namespace lacuna::cuda
