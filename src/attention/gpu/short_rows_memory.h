#pragma once

#include "attention/gpu/shared_memory.h"

namespace lacuna::cuda {

/// The shared memory of a block that works on a short sentence.
template <class T>
class ShortRowsMemory {
 public:
  int stride, score_stride;  ///< elements from one row to the next; padded, so that rows begin in different banks
  int64_t bytes = 0;         ///< of all

  /// Lays the parts out from `begin` on, null where only the bytes are wanted. width: d_head in whole tiles.
  LACUNA_HD ShortRowsMemory(unsigned char* begin, int width, const ShortSentence& sentence, int warp, int warps, bool is_backward)
      : stride(row_stride<T>(width)), score_stride(row_stride<T>(whole(sentence.keys))), begin_(begin) {
    take(keys_, whole(sentence.keys) * stride, true);
    take(values_, whole(sentence.keys) * stride, true);
    take(queries_, whole(sentence.queries) * stride, is_backward);
    take(context_gradient_, whole(sentence.queries) * stride, is_backward);
    take(weights_, whole(sentence.queries) * score_stride, is_backward);
    take(score_gradient_, whole(sentence.queries) * score_stride, is_backward);
    take(rows_, warps * kTile * stride, true);
    rows_ += warp * kTile * stride;
  }

  // [keys in whole tiles, stride], 0 behind the last.
  LACUNA_HD T* keys() const { return at(keys_); }
  LACUNA_HD T* values() const { return at(values_); }
  // [queries in whole tiles, stride], backward.
  LACUNA_HD T* queries() const { return at(queries_); }
  LACUNA_HD T* context_gradient() const { return at(context_gradient_); }
  // [queries in whole tiles, score_stride], backward; weights after dropout.
  LACUNA_HD T* weights() const { return at(weights_); }
  LACUNA_HD T* score_gradient() const { return at(score_gradient_); }
  // [kTile, stride], of each warp: on their way to or from the device's memory.
  LACUNA_HD T* rows() const { return at(rows_); }

  LACUNA_HD static int whole(int rows) { return (rows + kTile - 1) / kTile * kTile; }

 private:
  LACUNA_HD T* at(int element) const { return reinterpret_cast<T*>(begin_) + element; }
  LACUNA_HD void take(int& part, int elements, bool is_needed) {
    part = static_cast<int>(bytes / static_cast<int64_t>(sizeof(T)));
    if (is_needed) bytes += elements * static_cast<int64_t>(sizeof(T));
  }

  unsigned char* begin_;
  int keys_, values_, queries_, context_gradient_, weights_, score_gradient_,
      rows_;  // elements from `begin`: fewer registers than pointers
};

}  // namespace lacuna::cuda
