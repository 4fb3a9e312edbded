#pragma once

// The core's small products in vectors. Included only by files that are compiled once per instruction set.

#include <hwy/highway.h>

#include <cstdint>

#include "attention/cpu/task.h"
#include "attention/rows/dropout.h"
#include "attention/rows/transpose_simd.h"
#include "kernels/philox_words.h"

/// The namespace of code that is compiled for several instruction sets: with one name for all, the linker would take
/// one of them for all. A source that is compiled for more than Highway's target defines its own name.
#ifndef LACUNA_SIMD_NAMESPACE
#define LACUNA_SIMD_NAMESPACE HWY_NAMESPACE
#endif

namespace lacuna::core {
namespace LACUNA_SIMD_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// The small products that the core is made of, in vectors of float. core_plain.cpp says what each function does.
struct SimdMachine {
  using scalar = float;
  using Tag = hn::ScalableTag<float>;
  using Vector = hn::Vec<Tag>;
  using Mask = hn::Mask<Tag>;

  struct Strided {
    const float* data;
    int64_t row, column;
  };

  /// Sums each element over `depth` in one order whatever rows and width are: a row's bits do not depend on others.
  static void multiply(int rows, int depth, int width, Strided a, const float* b, int64_t b_row, float* out, int64_t out_row,
                       bool accumulate) {
    constexpr int kDepth = hn::MaxLanes(Tag()) >= 16 ? 128 : 64, kWidth = 64;  // so much of b stays in the L1 cache while all rows pass
    if (depth == 0) b = out;  // sums are 0; of a sentence without keys b may be null, which has no columns
    for (int k = 0; k == 0 || k < depth; k += kDepth) {
      const Strided factors = {a.data + k * a.column, a.row, a.column};
      for (int c = 0; c < width; c += kWidth)
        multiply_part(rows, depth - k < kDepth ? depth - k : kDepth, width - c < kWidth ? width - c : kWidth, factors, b + k * b_row + c,
                      b_row, out + c, out_row, accumulate || k > 0);
    }
  }

  static void transpose(int rows, int columns, const float* from, int64_t from_row, float scale, float* to, int64_t to_row) {
    if (rows >= lanes()) return transpose_groups<Tag>(rows, columns, from, from_row, scale, to, to_row);
    if (rows >= 8) return transpose_groups<hn::CappedTag<float, 8>>(rows, columns, from, from_row, scale, to, to_row);
    if (rows >= 4) return transpose_groups<hn::Full128<float>>(rows, columns, from, from_row, scale, to, to_row);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) to[c * to_row + r] = scale * from[r * from_row + c];
  }
  /// Transposes a matrix of anything that has 32 bits; rows and columns are multiples of 16.
  static void transpose_words(int rows, int columns, const uint32_t* from, int64_t from_row, uint32_t* to, int64_t to_row) {
    for (int r = 0; r < rows; r += lanes())
      for (int c = 0; c < columns; c += 4)
        lacuna::HWY_NAMESPACE::transpose_four(
            Tag(), [=](int i) HWY_ATTR { return reinterpret_cast<const float*>(from + (r + i) * from_row + c); },
            [=](int i, Vector column) HWY_ATTR { hn::StoreU(column, Tag(), reinterpret_cast<float*>(to + (c + i) * to_row + r)); });
  }

  static void dots(int count, const float* x, const int32_t* index, Rows<const float> rows, int width, float* out) {
    int j = 0;
    for (; j + 4 <= count; j += 4) {
      Vector sum[4];
      for (Vector& s : sum) s = hn::Zero(Tag());
      for_columns(width, [&](int c, auto load, auto) HWY_ATTR {
        const Vector xs = load(x + c);
        for (int i = 0; i < 4; ++i) sum[i] = hn::MulAdd(xs, load(rows.row(index[j + i]) + c), sum[i]);
      });
      for (int i = 0; i < 4; ++i) out[j + i] = hn::GetLane(hn::SumOfLanes(Tag(), sum[i]));
    }
    for (; j < count; ++j) {
      Vector sum = hn::Zero(Tag());
      for_columns(width, [&](int c, auto load, auto) HWY_ATTR { sum = hn::MulAdd(load(x + c), load(rows.row(index[j]) + c), sum); });
      out[j] = hn::GetLane(hn::SumOfLanes(Tag(), sum));
    }
  }

  static void combine(int count, const float* weights, const int32_t* index, Rows<const float> rows, int width, float* out) {
    constexpr int kVectors = 4;
    int c = 0;
    for (; c + kVectors * lanes() <= width; c += kVectors * lanes()) {
      Vector sum[kVectors];
      for (Vector& s : sum) s = hn::Zero(Tag());
      for (int j = 0; j < count; ++j) {
        const Vector weight = hn::Set(Tag(), weights[j]);
        const float* from = rows.row(index[j]) + c;
        for (int i = 0; i < kVectors; ++i) sum[i] = hn::MulAdd(weight, hn::LoadU(Tag(), from + i * lanes()), sum[i]);
      }
      for (int i = 0; i < kVectors; ++i) hn::StoreU(sum[i], Tag(), out + c + i * lanes());
    }
    for (; c < width; c += lanes()) {
      const Mask mask = first(width - c);
      Vector sum = hn::Zero(Tag());
      for (int j = 0; j < count; ++j)
        sum = hn::MulAdd(hn::Set(Tag(), weights[j]), hn::MaskedLoad(mask, Tag(), rows.row(index[j]) + c), sum);
      hn::BlendedStore(sum, mask, Tag(), out + c);
    }
  }

  static void scatter(int count, const float* weights, const int32_t* index, const float* x, int width, Rows<float> rows) {
    for (int j = 0; j < count; ++j) {
      float* to = rows.row(index[j]);
      const Vector weight = hn::Set(Tag(), weights[j]);
      int c = 0;
      for (; c + lanes() <= width; c += lanes())
        hn::StoreU(hn::MulAdd(weight, hn::LoadU(Tag(), x + c), hn::LoadU(Tag(), to + c)), Tag(), to + c);
      if (c == width) continue;
      const Mask mask = first(width - c);
      const Vector sum = hn::MulAdd(weight, hn::MaskedLoad(mask, Tag(), x + c), hn::MaskedLoad(mask, Tag(), to + c));
      hn::BlendedStore(sum, mask, Tag(), to + c);
    }
  }

  static void clear(int count, float* x) {
    for_columns(count, [&](int i, auto, auto store) HWY_ATTR { store(hn::Zero(Tag()), x + i); });
  }
  static void copy(int count, const float* from, float* to) {
    for_columns(count, [&](int i, auto load, auto store) HWY_ATTR { store(load(from + i), to + i); });
  }
  static void scale_elements(int count, float scale, float* x) {
    for_columns(count, [&](int i, auto load, auto store) HWY_ATTR { store(hn::Mul(hn::Set(Tag(), scale), load(x + i)), x + i); });
  }
  static void multiply_elements(int count, const float* factors, float* x) {
    for_columns(count, [&](int i, auto load, auto store) HWY_ATTR { store(hn::Mul(load(factors + i), load(x + i)), x + i); });
  }
  static void draw_factors(const DropoutRule& rule, float scale, int rows, int width, int32_t query, int32_t query_step, int32_t key,
                           float* factors, int64_t row) {
    const hn::RebindToSigned<Tag> integers;
    const hn::RebindToUnsigned<Tag> counters;
    using Counters = hn::Vec<decltype(counters)>;
    const auto factor_of = [&](auto word) HWY_ATTR {
      const auto is_dropped =
          hn::Lt(hn::BitCast(integers, hn::ShiftRight<8>(word)), hn::Set(integers, static_cast<int32_t>(rule.threshold)));
      return hn::IfThenZeroElse(hn::RebindMask(Tag(), is_dropped), hn::Set(Tag(), scale));
    };
    auto queries = hn::BitCast(counters, hn::Add(hn::Set(integers, query), hn::Mul(hn::Iota(integers, 0), hn::Set(integers, query_step))));
    const auto next = hn::Set(counters, static_cast<uint32_t>(lanes() * query_step));
    alignas(64) float drawn[4 * hn::MaxLanes(Tag())];  // for four keys of each query
    for (int r = 0; r < rows; r += lanes(), queries = hn::Add(queries, next)) {
      const int count = rows - r < lanes() ? rows - r : lanes();
      for (int j = 0; j < width; j += 4) {
        WordVector bits[4] = {hn::Set(counters, static_cast<uint32_t>(key + j) / 4).raw, queries.raw, all_words(0), all_words(0)};
        make_philox(rule.key, bits);
        hn::StoreInterleaved4(factor_of(Counters{bits[0]}), factor_of(Counters{bits[1]}), factor_of(Counters{bits[2]}),
                              factor_of(Counters{bits[3]}), Tag(), drawn);
        const hn::Full128<float> four;
        for (int i = 0; i < count; ++i) hn::StoreU(hn::Load(four, drawn + 4 * i), four, factors + (r + i) * row + j);
      }
    }
  }
  static int find_rows(int rows, int columns, const float* x, int64_t x_row, const RowsOfKeys& rows_of) {
    const hn::RebindToSigned<Tag> integers;
    const auto find = [&](int j, int begin, int end, int32_t* to) HWY_ATTR {
      auto bits = hn::Zero(integers);
      for (int r = begin; r < end; ++r) {
        const auto has_weight = hn::Not(hn::Eq(hn::LoadU(Tag(), x + r * x_row + j), hn::Zero(Tag())));  // NaN has
        bits =
            hn::Or(bits, hn::IfThenElseZero(hn::RebindMask(integers, has_weight), hn::Set(integers, static_cast<int32_t>(1U << r % 32))));
      }
      hn::StoreU(bits, integers, to + j);
    };
    for (int j = 0; j < columns; j += lanes()) {
      find(j, 0, rows < 32 ? rows : 32, rows_of.low);
      find(j, 32, rows, rows_of.high);
    }
    int found = 0;
    for (int j = 0; j < columns; ++j) found += __builtin_popcountll(rows_of[j]);
    return found;
  }
  static void multiply_named(const RowsOfKeys& rows_of, int columns, int width, Rows<const float> a, Rows<const float> b, float* x,
                             int64_t x_row) {
    constexpr int kRows = 4;  // at a time
    for (int j = 0; j < columns; ++j) {
      for (uint64_t bits = rows_of[j]; bits != 0;) {
        int row[kRows], count = 0;
        for (; count < kRows && bits != 0; bits &= bits - 1) row[count++] = __builtin_ctzll(bits);
        for (int i = count; i < kRows; ++i) row[i] = row[0];
        Vector sum[kRows];
        for (Vector& s : sum) s = hn::Zero(Tag());
        for_columns(width, [&](int c, auto load, auto) HWY_ATTR {
          const Vector of_key = load(b.row(j) + c);
          for (int i = 0; i < kRows; ++i) sum[i] = hn::MulAdd(load(a.row(row[i]) + c), of_key, sum[i]);
        });
        alignas(16) float sums[kRows];
        hn::Store(sums_of_lanes(sum), hn::Full128<float>(), sums);
        for (int i = 0; i < count; ++i) x[row[i] * x_row + j] = sums[i];
      }
    }
  }
  static void add_to_rows(const RowsOfKeys& rows_of, int columns, int width, const float* x, int64_t x_row, Rows<const float> b,
                          Rows<float> to) {
    for_vectors(width, [&](int c, auto load, auto store) HWY_ATTR {
      for (int j = 0; j < columns; ++j) {
        const auto from = load(b.row(j) + c);
        for_each_bit(rows_of[j], [&](int r) HWY_ATTR {
          float* const row = to.row(r) + c;
          store(add_multiple(load(row), x[r * x_row + j], from), row);
        });
      }
    });
  }
  static void add_gradients(const RowsOfKeys& rows_of, int columns, int width, const float* weights, const float* gradient, int64_t x_row,
                            const Task<float>& task) {
    for_vectors(width, [&](int c, auto load, auto store) HWY_ATTR {
      for (int j = 0; j < columns; ++j) {
        if (rows_of[j] == 0) continue;
        float* const of_key = task.k_gradient.row(j) + c;
        float* const of_value = task.v_gradient.row(j) + c;
        const auto key = load(task.k.row(j) + c);
        auto key_sum = load(of_key), value_sum = load(of_value);
        for_each_bit(rows_of[j], [&](int r) HWY_ATTR {
          const float weight = weights[r * x_row + j], of_score = gradient[r * x_row + j];
          float* const of_query = task.q_gradient.row(r) + c;
          value_sum = add_multiple(value_sum, weight, load(task.context_gradient.row(r) + c));
          key_sum = add_multiple(key_sum, of_score, load(task.q.row(r) + c));
          store(add_multiple(load(of_query), of_score, key), of_query);
        });
        store(key_sum, of_key);
        store(value_sum, of_value);
      }
    });
  }

 private:
  static HWY_INLINE int lanes() { return static_cast<int>(hn::Lanes(Tag())); }
  static HWY_INLINE Mask first(int count) { return hn::FirstN(Tag(), static_cast<size_t>(count)); }

  /// Calls f(c, load, store) for each vector of columns; `load` and `store` leave out what lies beyond the last column.
  template <class F>
  static HWY_INLINE void for_columns(int width, F f) {
    int c = 0;
    for (; c + lanes() <= width; c += lanes())
      f(
          c, [](const float* from) HWY_ATTR { return hn::LoadU(Tag(), from); },
          [](Vector x, float* to) HWY_ATTR { hn::StoreU(x, Tag(), to); });
    if (c >= width) return;
    const Mask mask = first(width - c);
    f(
        c, [=](const float* from) HWY_ATTR { return hn::MaskedLoad(mask, Tag(), from); },
        [=](Vector x, float* to) HWY_ATTR { hn::BlendedStore(x, mask, Tag(), to); });
  }

  /// Returns the sum of the lanes of each of four vectors.
  static HWY_INLINE hn::Vec<hn::Full128<float>> sums_of_lanes(const Vector (&x)[4]) {
    const hn::RepartitionToWide<Tag> pairs;
    const auto both = [](Vector upper, Vector lower)
                          HWY_ATTR { return hn::Add(hn::InterleaveLower(Tag(), upper, lower), hn::InterleaveUpper(Tag(), upper, lower)); };
    const auto first = hn::BitCast(pairs, both(x[0], x[1])), second = hn::BitCast(pairs, both(x[2], x[3]));
    return sum_of_blocks<Tag>(hn::Add(hn::BitCast(Tag(), hn::InterleaveLower(pairs, first, second)),
                                      hn::BitCast(Tag(), hn::InterleaveUpper(pairs, first, second))));
  }
  template <class D>
  static HWY_INLINE hn::Vec<hn::Full128<float>> sum_of_blocks(hn::Vec<D> x) {
    if constexpr (hn::MaxLanes(D()) == 4) {
      return x;
    } else {
      const hn::Half<D> half;
      return sum_of_blocks<hn::Half<D>>(hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
    }
  }

  template <class F>
  static HWY_INLINE void for_each_bit(uint64_t bits, F f) {
    for (; bits != 0; bits &= bits - 1) f(__builtin_ctzll(bits));
  }

  /// Some neighboring vectors of a row.
  template <int kVectors>
  struct Vectors {
    Vector part[kVectors];
  };
  template <int kVectors>
  static HWY_INLINE Vectors<kVectors> add_multiple(Vectors<kVectors> sum, float factor, const Vectors<kVectors>& x) {
    for (int i = 0; i < kVectors; ++i) sum.part[i] = hn::MulAdd(hn::Set(Tag(), factor), x.part[i], sum.part[i]);
    return sum;
  }

  /// Calls f(c, load, store) for each part of a row of `width` from column c on: four vectors, or what is left of one.
  template <class F>
  static HWY_INLINE void for_vectors(int width, F f) {
    constexpr int kVectors = 4;
    int c = 0;
    for (; c + kVectors * lanes() <= width; c += kVectors * lanes()) {
      f(
          c,
          [](const float* from) HWY_ATTR {
            Vectors<kVectors> x;
            for (int i = 0; i < kVectors; ++i) x.part[i] = hn::LoadU(Tag(), from + i * lanes());
            return x;
          },
          [](const Vectors<kVectors>& x, float* to) HWY_ATTR {
            for (int i = 0; i < kVectors; ++i) hn::StoreU(x.part[i], Tag(), to + i * lanes());
          });
    }
    for (; c < width; c += lanes()) {
      const Mask mask = first(width - c);
      f(
          c, [=](const float* from) HWY_ATTR { return Vectors<1>{{hn::MaskedLoad(mask, Tag(), from)}}; },
          [=](const Vectors<1>& x, float* to) HWY_ATTR { hn::BlendedStore(x.part[0], mask, Tag(), to); });
    }
  }

  // Rows of two vectors of columns, whose sums stay in registers: a factor is loaded once for both.
  static constexpr int kRowsAtOnce = hn::MaxLanes(Tag()) >= 16 ? 8 : 6, kColumns = 2;

  static void multiply_part(int rows, int depth, int width, Strided a, const float* b, int64_t b_row, float* out, int64_t out_row,
                            bool accumulate) {
    for (int groups = (rows + kRowsAtOnce - 1) / kRowsAtOnce; groups > 0;
         --groups) {  // of much the same size: in a small one, sums would wait for themselves
      const int done = (rows + groups - 1) / groups;
      multiply_rows_up_to<kRowsAtOnce>(done, depth, width, a, b, b_row, out, out_row, accumulate);
      rows -= done;
      a.data += done * a.row;
      out += done * out_row;
    }
  }

  /// Multiplies 1 to kMost rows.
  template <int kMost>
  static HWY_INLINE void multiply_rows_up_to(int rows, int depth, int width, Strided a, const float* b, int64_t b_row, float* out,
                                             int64_t out_row, bool accumulate) {
    if constexpr (kMost > 1)
      if (rows < kMost) return multiply_rows_up_to<kMost - 1>(rows, depth, width, a, b, b_row, out, out_row, accumulate);
    multiply_rows<kMost>(depth, width, a, b, b_row, out, out_row, accumulate);
  }

  template <int kCount>
  static HWY_INLINE void multiply_rows(int depth, int width, Strided a, const float* b, int64_t b_row, float* out, int64_t out_row,
                                       bool accumulate) {
    const auto load = [](const float* from, bool) HWY_ATTR { return hn::LoadU(Tag(), from); };
    const auto store = [](Vector values, float* to, bool) HWY_ATTR { hn::StoreU(values, Tag(), to); };
    int c = 0;
    for (; c + kColumns * lanes() <= width; c += kColumns * lanes())
      multiply_block<kCount, kColumns>(depth, a, b + c, b_row, out + c, out_row, accumulate, load, store);
    if (c == width) return;
    const int rest = width - c, of_last = rest % lanes();
    if (of_last == 0) return multiply_block<kCount, 1>(depth, a, b + c, b_row, out + c, out_row, accumulate, load, store);
    const Mask mask = first(of_last);
    const auto load_rest = [=](const float* from, bool is_last)
                               HWY_ATTR { return is_last ? hn::MaskedLoad(mask, Tag(), from) : hn::LoadU(Tag(), from); };
    const auto store_rest = [=](Vector values, float* to, bool is_last)
                                HWY_ATTR { is_last ? hn::BlendedStore(values, mask, Tag(), to) : hn::StoreU(values, Tag(), to); };
    rest > lanes() ? multiply_block<kCount, 2>(depth, a, b + c, b_row, out + c, out_row, accumulate, load_rest, store_rest)
                   : multiply_block<kCount, 1>(depth, a, b + c, b_row, out + c, out_row, accumulate, load_rest, store_rest);
  }

  /// out (kCount rows, kVectors vectors) = or += a b. `load` and `store` are told whether a vector is the last of them.
  template <int kCount, int kVectors, class Load, class Store>
  static HWY_INLINE void multiply_block(int depth, Strided a, const float* b, int64_t b_row, float* out, int64_t out_row, bool accumulate,
                                        Load load, Store store) {
    Vector sum[kCount][kVectors];
    for (int r = 0; r < kCount; ++r)
      for (int v = 0; v < kVectors; ++v)
        sum[r][v] = accumulate ? load(out + r * out_row + v * lanes(), v == kVectors - 1) : hn::Zero(Tag());
    for (int k = 0; k < depth; ++k) {
      Vector column[kVectors];
      for (int v = 0; v < kVectors; ++v) column[v] = load(b + k * b_row + v * lanes(), v == kVectors - 1);
      const float* factors = a.data + k * a.column;
      for (int r = 0; r < kCount; ++r) {
        const Vector factor = hn::Set(Tag(), factors[r * a.row]);
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(factor, column[v], sum[r][v]);
      }
    }
    for (int r = 0; r < kCount; ++r)
      for (int v = 0; v < kVectors; ++v) store(sum[r][v], out + r * out_row + v * lanes(), v == kVectors - 1);
  }

  /// Transposes at least as many rows as D has lanes; where the lanes do not divide them, some rows twice.
  template <class D>
  static HWY_INLINE void transpose_groups(int rows, int columns, const float* from, int64_t from_row, float scale, float* to,
                                          int64_t to_row) {
    const int group = static_cast<int>(hn::Lanes(D())), last = rows - group;
    for (int r = 0; r < last; r += group) transpose_rows<D>(columns, from + r * from_row, from_row, scale, to + r, to_row);
    transpose_rows<D>(columns, from + last * from_row, from_row, scale, to + last, to_row);
  }

  /// Transposes as many rows as D has lanes.
  template <class D>
  static HWY_INLINE void transpose_rows(int columns, const float* from, int64_t from_row, float scale, float* to, int64_t to_row) {
    const auto factor = hn::Set(D(), scale);
    int c = 0;
    for (; c + 4 <= columns; c += 4)
      lacuna::HWY_NAMESPACE::transpose_four(
          D(), [=](int i) HWY_ATTR { return from + i * from_row + c; },
          [=](int i, auto column) HWY_ATTR { hn::StoreU(hn::Mul(factor, column), D(), to + (c + i) * to_row); });
    for (; c < columns; ++c)
      for (int i = 0; i < static_cast<int>(hn::Lanes(D())); ++i) to[c * to_row + i] = scale * from[i * from_row + c];
  }
};

}  // namespace LACUNA_SIMD_NAMESPACE

using LACUNA_SIMD_NAMESPACE::SimdMachine;

}  // namespace lacuna::core
