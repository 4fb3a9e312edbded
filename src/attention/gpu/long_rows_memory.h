#pragma once

#include "attention/gpu/shared_memory.h"

namespace lacuna::cuda {

/// Parts of memory, one after the other, counted in bytes.
class MemoryParts {
 public:
  LACUNA_HD explicit MemoryParts(unsigned char* begin) : begin_(begin) {}

  /// Returns the next part, null where there is no memory yet and only bytes are counted.
  template <class X>
  LACUNA_HD X* take(int64_t elements) {
    X* const part = begin_ == nullptr ? nullptr : reinterpret_cast<X*>(begin_ + bytes);
    bytes += (elements * static_cast<int64_t>(sizeof(X)) + 15) / 16 * 16;
    return part;
  }
  int64_t bytes = 0;

 private:
  unsigned char* begin_;
};

/// The memory of a block that works on a tile of queries of long rows.
template <class T>
struct LongRowsMemory {
  static constexpr int kRing = kKeyGroup * right_stride<T>();  ///< elements of one of a warp's two buffers
  static_assert(kTile * kSumStride * sizeof(float) <= 2 * kRing * sizeof(T));

  int stride;                     ///< of queries
  T *queries, *context_gradient;  // [kTile, stride]: 0 behind the last
  T* ring;                        // [2, kKeyGroup, right_stride], of each warp: keys or values, kColumns of their columns
  float* joined;                  // LongRow::joined
  float* log;                     // ResultLog::to
  unsigned char* flags;           // [groups]: KernelCall::has_weight of the tile
  float *weights, *gradient;      // elements of rows: shared out among lanes (LaneElements)
  int64_t bytes, row_bytes;       ///< of all in shared memory, and of those in the device's

  /// `rows`: where rows lie in the device's memory; `keeps_rows_outside`: they do, and only bytes are counted if it is null.
  LACUNA_HD LongRowsMemory(unsigned char* begin, unsigned char* rows, bool keeps_rows_outside, int width, int groups, int warps,
                           bool is_backward)
      : stride(row_stride<T>(width)) {
    MemoryParts shared(begin), outside(rows);
    queries = shared.take<T>(kTile * stride);
    context_gradient = shared.take<T>(is_backward ? kTile * stride : 0);
    ring = shared.take<T>(int64_t{2} * kRing * warps);
    joined = shared.take<float>(warps * kMostRowSums * kTile);
    log = shared.take<float>(2 * kRowResults * kTile);
    flags = shared.take<unsigned char>(groups);
    const int64_t elements = int64_t{(groups + warps - 1) / warps * warps} * kKeyGroup * kTile;
    MemoryParts& of_rows = keeps_rows_outside ? outside : shared;
    weights = of_rows.take<float>(elements);
    gradient = of_rows.take<float>(is_backward ? elements : 0);
    bytes = shared.bytes;
    row_bytes = outside.bytes;
  }
};

/// The shared memory of a block that finds the gradients of keys of long rows.
template <class T>
struct LongKeysMemory {
  int stride;             ///< of keys and queries
  T *keys, *values;       // [kLongKeys, stride]
  T *weights, *gradient;  // [kTile, left_stride], of each warp
  int64_t bytes;          ///< of all

  LACUNA_HD LongKeysMemory(unsigned char* begin, int width, int warp, int warps) : stride(row_stride<T>(width)) {
    constexpr int kProduct = kTile * left_stride<T>();
    MemoryParts parts(begin);
    keys = parts.take<T>(kLongKeys * stride);
    values = parts.take<T>(kLongKeys * stride);
    rows_ = parts.take<T>(4 * kTile * stride);
    records_ = parts.take<LongRowRecord>(2 * kTile);
    weights = parts.take<T>(warps * kProduct);
    gradient = parts.take<T>(warps * kProduct);
    if (begin != nullptr) weights += warp * kProduct, gradient += warp * kProduct;
    bytes = parts.bytes;
  }

  // Of a tile of queries and of the next, in turn.
  LACUNA_HD T* queries(int buffer) const { return rows_ + 2 * buffer * kTile * stride; }                 // [kTile, stride]
  LACUNA_HD T* context_gradient(int buffer) const { return rows_ + (2 * buffer + 1) * kTile * stride; }  // [kTile, stride]
  LACUNA_HD LongRowRecord* records(int buffer) const { return records_ + buffer * kTile; }               // [kTile]

 private:
  T* rows_;
  LongRowRecord* records_;
};

}  // namespace lacuna::cuda
