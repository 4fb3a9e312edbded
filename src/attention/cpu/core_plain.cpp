#include <bit>
#include <cstdint>

#include "attention/cpu/core_together.h"
#include "attention/cpu/task.h"
#include "attention/rows/dropout.h"
#include "attention/rows/row_plain.h"

namespace lacuna::core {

/// The small products that the core is made of, as plain loops. SimdMachine has the same functions in vectors.
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
  static void dots(int count, const T* x, const int32_t* index, Rows<const T> rows, int width, T* out) {
    for (int j = 0; j < count; ++j) {
      out[j] = 0;
      for (int c = 0; c < width; ++c) out[j] += x[c] * rows.row(index[j])[c];
    }
  }
  /// out = sum_j weights[j] rows[index[j]]
  static void combine(int count, const T* weights, const int32_t* index, Rows<const T> rows, int width, T* out) {
    clear(width, out);
    for (int j = 0; j < count; ++j)
      for (int c = 0; c < width; ++c) out[c] += weights[j] * rows.row(index[j])[c];
  }
  /// rows[index[j]] += weights[j] x
  static void scatter(int count, const T* weights, const int32_t* index, const T* x, int width, Rows<T> rows) {
    for (int j = 0; j < count; ++j)
      for (int c = 0; c < width; ++c) rows.row(index[j])[c] += weights[j] * x[c];
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

  /// Draws the dropout factors, 0 or `scale`, of `rows` queries at positions query, query + query_step, ... for keys
  /// from `key` on, a multiple of 4. Up to three more may be written behind each row.
  static void draw_factors(const DropoutRule& rule, T scale, int rows, int width, int32_t query, int32_t query_step, int32_t key,
                           T* factors, int64_t row) {
    for (int r = 0; r < rows; ++r)
      for (int j = 0; j < width; j += 4) {
        const PhiloxBlock bits = rule.draw(query + r * query_step, key + j);
        for (int i = j; i < j + 4; ++i) factors[r * row + i] = rule.drops(bits, key + i) ? T(0) : scale;
      }
  }

  // Products of rows of weights x (rows, columns) that are mostly zero, by the elements that `rows_of` names.

  /// Sets rows_of to the elements of x that are not zero; returns how many there are.
  static int find_rows(int rows, int columns, const T* x, int64_t x_row, const RowsOfKeys& rows_of) {
    int found = 0;
    for (int j = 0; j < columns; ++j) {
      uint64_t bits = 0;
      for (int r = 0; r < rows; ++r) bits |= uint64_t{x[r * x_row + j] != 0} << r;
      rows_of.low[j] = static_cast<int32_t>(bits);
      rows_of.high[j] = static_cast<int32_t>(bits >> 32);
      found += std::popcount(bits);
    }
    return found;
  }
  /// x = a (rows, width) x b (columns, width)^T at these elements; others are left alone.
  static void multiply_named(const RowsOfKeys& rows_of, int columns, int width, Rows<const T> a, Rows<const T> b, T* x, int64_t x_row) {
    for_each_named(rows_of, columns, [&](int r, int j) {
      T sum = 0;
      for (int c = 0; c < width; ++c) sum += a.row(r)[c] * b.row(j)[c];
      x[r * x_row + j] = sum;
    });
  }
  /// to (rows, width) += x b, b (columns, width)
  static void add_to_rows(const RowsOfKeys& rows_of, int columns, int width, const T* x, int64_t x_row, Rows<const T> b, Rows<T> to) {
    for_each_named(rows_of, columns, [&](int r, int j) {
      for (int c = 0; c < width; ++c) to.row(r)[c] += x[r * x_row + j] * b.row(j)[c];
    });
  }
  /// Adds to the gradients of q, k and v, from the weights and the gradient of scores before scaling. The task's rows
  /// begin where the tile does.
  static void add_gradients(const RowsOfKeys& rows_of, int columns, int width, const T* weights, const T* gradient, int64_t x_row,
                            const Task<T>& task) {
    for_each_named(rows_of, columns, [&](int r, int j) {
      const T weight = weights[r * x_row + j], of_score = gradient[r * x_row + j];
      for (int c = 0; c < width; ++c) {
        task.q_gradient.row(r)[c] += of_score * task.k.row(j)[c];
        task.k_gradient.row(j)[c] += of_score * task.q.row(r)[c];
        task.v_gradient.row(j)[c] += weight * task.context_gradient.row(r)[c];
      }
    });
  }

 private:
  template <class F>
  static void for_each_named(const RowsOfKeys& rows_of, int columns, F f) {
    for (int j = 0; j < columns; ++j)
      for (uint64_t rows = rows_of[j]; rows != 0; rows &= rows - 1) f(std::countr_zero(rows), j);
  }
};

EntryPoints<double> core_plain() {
  return entry_points<PlainMachine<double>>();
}

}  // namespace lacuna::core
