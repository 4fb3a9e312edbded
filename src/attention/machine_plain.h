#pragma once

#include <cstdint>

#include "attention/row_plain.h"

namespace lacuna::core {

/// The small products that the core is made of, as plain loops.
template <class T>
struct PlainMachine {
  using scalar = T;

  /// A matrix by its strides: element (r, c) is data[r * row + c * column].
  struct Strided {
    const T* data;
    int64_t row, column;
  };

  /// out (rows, width) = a (rows, depth) x b (depth, width), or += if `accumulate`.
  static void multiply(int rows, int depth, int width, Strided a, const T* b, int64_t b_row, T* out, int64_t out_row, bool accumulate) {
    for (int r = 0; r < rows; ++r) {
      T* to = out + r * out_row;
      if (!accumulate) clear(width, to);
      for (int c = 0; c < depth; ++c)
        for (int j = 0; j < width; ++j) to[j] += a.data[r * a.row + c * a.column] * b[c * b_row + j];
    }
  }
  /// to (columns, rows) = scale * from (rows, columns), transposed.
  static void transpose(int rows, int columns, const T* from, int64_t from_row, T scale, T* to, int64_t to_row) {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) to[c * to_row + r] = scale * from[r * from_row + c];
  }
  /// out[j] = x . rows[index[j]]
  static void dots(int count, const T* x, const int32_t* index, const T* rows, int64_t row, int width, T* out) {
    for (int j = 0; j < count; ++j) {
      out[j] = 0;
      for (int c = 0; c < width; ++c) out[j] += x[c] * rows[index[j] * row + c];
    }
  }
  /// out = sum_j weights[j] rows[index[j]]
  static void combine(int count, const T* weights, const int32_t* index, const T* rows, int64_t row, int width, T* out) {
    clear(width, out);
    for (int j = 0; j < count; ++j)
      for (int c = 0; c < width; ++c) out[c] += weights[j] * rows[index[j] * row + c];
  }
  /// rows[index[j]] += weights[j] x
  static void scatter(int count, const T* weights, const int32_t* index, const T* x, int width, T* rows, int64_t row) {
    for (int j = 0; j < count; ++j)
      for (int c = 0; c < width; ++c) rows[index[j] * row + c] += weights[j] * x[c];
  }

  static void clear(int count, T* x) {
    for (int i = 0; i < count; ++i) x[i] = 0;
  }
  static void copy(int count, const T* from, T* to) {
    for (int i = 0; i < count; ++i) to[i] = from[i];
  }
  static void scale_elements(int count, T scale, T* x) {
    for (int i = 0; i < count; ++i) x[i] *= scale;
  }
  static void multiply_elements(int count, const T* factors, T* x) {
    for (int i = 0; i < count; ++i) x[i] *= factors[i];
  }
  static int count_nonzero(int count, const T* x) {
    int found = 0;
    for (int i = 0; i < count; ++i) found += x[i] != 0;
    return found;
  }
  /// index = where x is not 0; gives how many there are.
  static int find_nonzero(int count, const T* x, int32_t* index) {
    int found = 0;
    for (int i = 0; i < count; ++i)
      if (x[i] != 0) index[found++] = i;
    return found;
  }
  static void gather(int count, const int32_t* index, const T* from, T* to) {
    for (int j = 0; j < count; ++j) to[j] = from[index[j]];
  }
};

}  // namespace lacuna::core
