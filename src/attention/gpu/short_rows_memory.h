#pragma once

#include "attention/gpu/shared_memory.h"

namespace lacuna::cuda {

/// The shared memory of a block that works on a short sentence.
template <class T>
struct ShortRowsMemory {
  int stride, score_stride;       ///< elements from one row to the next; padded, so that rows begin in different banks
  T *keys, *values;               // [keys in whole tiles, stride]: 0 behind the last
  T *queries, *context_gradient;  // [queries in whole tiles, stride], backward
  T *weights, *score_gradient;    // [queries in whole tiles, score_stride], backward: weights after dropout
  T* rows;                        // [kTile, stride], of each warp: on their way to or from the device's memory
  int64_t bytes = 0;              ///< of all

  /// Lays the parts out from `begin` on; if it is null, only counts the bytes. width: d_head in whole tiles.
  LACUNA_HD ShortRowsMemory(unsigned char* begin, int width, const ShortSentence& sentence, int warp, int warps, bool is_backward)
      : stride(row_stride<T>(width)), score_stride(row_stride<T>(whole(sentence.keys))), begin_(begin) {
    take(keys, whole(sentence.keys) * stride, true);
    take(values, whole(sentence.keys) * stride, true);
    take(queries, whole(sentence.queries) * stride, is_backward);
    take(context_gradient, whole(sentence.queries) * stride, is_backward);
    take(weights, whole(sentence.queries) * score_stride, is_backward);
    take(score_gradient, whole(sentence.queries) * score_stride, is_backward);
    take(rows, warps * kTile * stride, true);
    if (rows != nullptr) rows += warp * kTile * stride;
  }

  LACUNA_HD static int whole(int rows) { return (rows + kTile - 1) / kTile * kTile; }

 private:
  LACUNA_HD void take(T*& part, int elements, bool is_needed) {
    part = is_needed && begin_ != nullptr ? reinterpret_cast<T*>(begin_ + bytes) : nullptr;
    if (is_needed) bytes += elements * static_cast<int64_t>(sizeof(T));
  }

  unsigned char* begin_;
};

}  // namespace lacuna::cuda
