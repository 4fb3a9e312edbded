#pragma once

// A tile's products of factors in bf16 with sums in float. Included only by core_bf16.cpp.

#include <immintrin.h>

#include "attention/cpu/machine_simd.h"
#include "attention/cpu/products.h"
#include "kernels/amx_tiles.h"
#include "kernels/vector_sums.h"

namespace lacuna::core {
namespace LACUNA_SIMD_NAMESPACE {

/// A factor of bf16, two numbers to a word: neighbors of a row in a left factor, of a column in a right one.
struct Words {
  uint32_t* data;
  int64_t row;  ///< from one to the next
};

/// Packs numbers into words.
class Packer {
 public:
  /// Rows of float or of bf16, `stride` elements apart.
  struct Rows {
    const float* numbers;
    const uint16_t* stored;  ///< null = numbers
    int64_t stride;

    Rows from(int64_t row) const {
      return {numbers == nullptr ? nullptr : numbers + row * stride, stored == nullptr ? nullptr : stored + row * stride, stride};
    }
  };

  /// Writes (rows, columns) as a left factor, and zeros in the rest of `padded_rows` and `padded_columns`, a multiple
  /// of 32.
  static void pack_left(int rows, int columns, const Rows& from, int padded_rows, int padded_columns, Words to) {
    from.stored == nullptr ? pack_left_from(rows, columns, from.numbers, from.stride, padded_rows, padded_columns, to)
                           : pack_left_from(rows, columns, from.stored, from.stride, padded_rows, padded_columns, to);
  }
  /// Writes (rows, columns) as a right factor, and zeros in the rest of `padded_rows`, which is even, and
  /// `padded_columns`, a multiple of 16.
  static void pack_right(int rows, int columns, const Rows& from, int padded_rows, int padded_columns, Words to) {
    from.stored == nullptr ? pack_right_from(rows, columns, from.numbers, from.stride, padded_rows, padded_columns, to)
                           : pack_right_from(rows, columns, from.stored, from.stride, padded_rows, padded_columns, to);
  }
  static void widen_row(int count, const uint16_t* from, float* to) {
    for (int c = 0; c < count; c += 16) {
      const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(half(from + c, count - c)), 16);
      _mm512_mask_storeu_ps(to + c, mask_of(count - c), (__m512)bits);
    }
  }
  /// Writes scale times `count` numbers, rounded.
  static void round_row(int count, float scale, const float* from, uint16_t* to) {
    const __m512 factor = _mm512_set1_ps(scale);
    for (int c = 0; c < count; c += 32) {
      const __m512i both =
          rounded(_mm512_mul_ps(factor, load(from + c, count - c)), _mm512_mul_ps(factor, load(from + c + 16, count - c - 16)));
      count - c >= 32 ? _mm512_storeu_si512(to + c, both) : _mm512_mask_storeu_epi16(to + c, (1U << (count - c)) - 1, both);
    }
  }

 private:
  template <class T>
  static void pack_left_from(int rows, int columns, const T* from, int64_t from_row, int padded_rows, int padded_columns, Words to) {
    for (int r = 0; r < padded_rows; ++r) {
      prefetch(from + (r + kAhead) * from_row, columns);
      for (int c = 0; c < padded_columns; c += 32)
        store(numbers_of_row(from + r * from_row + c, r < rows ? columns - c : 0), to.data + r * to.row + c / 2);
    }
  }
  template <class T>
  static void pack_right_from(int rows, int columns, const T* from, int64_t from_row, int padded_rows, int padded_columns, Words to) {
    for (int r = 0; r < padded_rows; r += 2) {
      prefetch(from + (r + kAhead) * from_row, columns);
      prefetch(from + (r + kAhead + 1) * from_row, columns);
      for (int c = 0; c < padded_columns; c += 16) {
        const __m512i both =
            two_rows(from + r * from_row + c, r < rows ? columns - c : 0, from + (r + 1) * from_row + c, r + 1 < rows ? columns - c : 0);
        store(_mm512_permutexvar_epi16(interleaved_order(), both), to.data + r / 2 * to.row + c);
      }
    }
  }

  static constexpr int kAhead = 12;  ///< rows from the one that is packed to the one that is prefetched: rows of a tensor lie far apart
  template <class T>
  static HWY_INLINE void prefetch(const T* row, int columns) {
    constexpr int kLine = 64 / sizeof(T);
    for (int c = 0; c < columns; c += kLine) _mm_prefetch(row + c, _MM_HINT_T0);
  }

  /// Returns 32 numbers of a row; those from `count` on are 0.
  static HWY_INLINE __m512i numbers_of_row(const float* from, int count) { return rounded(load(from, count), load(from + 16, count - 16)); }
  static HWY_INLINE __m512i numbers_of_row(const uint16_t* from, int count) {
    return _mm512_maskz_loadu_epi16(count >= 32 ? ~0U : count > 0 ? (1U << count) - 1 : 0, from);
  }
  /// Returns 16 numbers of each of two rows.
  static HWY_INLINE __m512i two_rows(const float* upper, int upper_count, const float* lower, int lower_count) {
    return rounded(load(upper, upper_count), load(lower, lower_count));
  }
  static HWY_INLINE __m512i two_rows(const uint16_t* upper, int upper_count, const uint16_t* lower, int lower_count) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(half(upper, upper_count)), half(lower, lower_count), 1);
  }
  static HWY_INLINE __m256i half(const uint16_t* from, int count) { return _mm256_maskz_loadu_epi16(mask_of(count), from); }
  static HWY_INLINE __m512 load(const float* from, int count) {
    return count >= 16 ? _mm512_loadu_ps(from) : _mm512_maskz_loadu_ps(mask_of(count), from);
  }
  static HWY_INLINE __mmask16 mask_of(int count) {
    return static_cast<__mmask16>(count >= 16 ? 0xFFFF : count > 0 ? (1U << count) - 1 : 0);
  }
  static HWY_INLINE void store(__m512i words, uint32_t* to) { _mm512_storeu_si512(to, words); }

  /// Returns x and y rounded, x first.
  static HWY_INLINE __m512i rounded(__m512 x, __m512 y) { return (__m512i)_mm512_cvtne2ps_pbh(y, x); }

  /// Returns the order 0, 16, 1, 17, ...
  static HWY_INLINE __m512i interleaved_order() {
    const __m512i first = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_add_epi32(_mm512_or_si512(first, _mm512_slli_epi32(first, 16)), _mm512_set1_epi32(16 << 16));
  }
};

// A multiplier lives while products are taken. multiply(rows, words, width, a, b, scale, out, out_row) computes
// out (rows, width) = scale * a (rows, words) x b (words, width), and multiply_add without `scale` out += a x b, both
// padded with zeros: rows up to the next multiple of 16 may be written, words are a multiple of 16, width is one of 32.
// Each sum is one chain in the order of words: a row's bits do not depend on how many rows there are.

/// Multiplies in the registers for tiles (AMX): 16 rows of 16 words in one instruction.
class TileMultiplier {
 public:
  static constexpr int kTileRows = 32;  ///< queries of a tile: as many as share what is loaded

  void multiply(int rows, int words, int width, const Words& a, const Words& b, float scale, float* out, int64_t out_row) const {
    multiply_tiles(rows, words, width, a, b, out, out_row, false);
    if (scale == 1) return;
    for (int r = 0; r < rows; ++r) SimdMachine::scale_elements(width, scale, out + r * out_row);
  }
  void multiply_add(int rows, int words, int width, const Words& a, const Words& b, float* out, int64_t out_row) const {
    multiply_tiles(rows, words, width, a, b, out, out_row, true);
  }

 private:
  /// Not inlined: the compiler does not know that loading a register reads memory, and might write there later.
  [[gnu::noinline]] void multiply_tiles(int rows, int words, int width, const Words& a, const Words& b, float* out, int64_t out_row,
                                        bool accumulate) const {
    for (int r = 0; r < rows; r += 32) {
      for (int c = 0; c < width; c += 32) {
        const Words left = {a.data + r * a.row, a.row}, right = {b.data + c, b.row};
        rows - r > 16 ? multiply_block<true>(words, left, right, out + r * out_row + c, out_row, accumulate)
                      : multiply_block<false>(words, left, right, out + r * out_row + c, out_row, accumulate);
      }
    }
  }

  /// Registers 0 to 3 hold the sums of two by two tiles of the result, 4 and 5 rows, 6 and 7 columns.
  template <bool kBoth>
  HWY_INLINE void multiply_block(int words, const Words& a, const Words& b, float* out, int64_t out_row, bool accumulate) const {
    const int64_t row = out_row * 4, a_row = a.row * 4, b_row = b.row * 4;
    float* below = out + 16 * out_row;
    if (accumulate) {
      _tile_loadd(0, out, row);
      _tile_loadd(1, out + 16, row);
      if constexpr (kBoth) {
        _tile_loadd(2, below, row);
        _tile_loadd(3, below + 16, row);
      }
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    for (int w = 0; w < words; w += 16) {
      _tile_loadd(6, b.data + w * b.row, b_row);
      _tile_loadd(7, b.data + w * b.row + 16, b_row);
      _tile_loadd(4, a.data + w, a_row);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      if constexpr (kBoth) {
        _tile_loadd(5, a.data + 16 * a.row + w, a_row);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
    _tile_stored(0, out, row);
    _tile_stored(1, out + 16, row);
    if constexpr (kBoth) {
      _tile_stored(2, below, row);
      _tile_stored(3, below + 16, row);
    }
  }

  const TilesInUse tiles_;
};

/// Multiplies in vectors of 16 words (AVX512-BF16).
class VectorMultiplier {
 public:
  static constexpr int kTileRows = 64;  ///< queries of a tile: the more, the longer a column of keys serves

  void multiply(int rows, int words, int width, const Words& a, const Words& b, float scale, float* out, int64_t out_row) const {
    for (int c = 0; c < width; c += 32) sum(rows, columns_from(c, words, a, b), SumsTimes{scale}, out + c, out_row);
  }
  void multiply_add(int rows, int words, int width, const Words& a, const Words& b, float* out, int64_t out_row) const {
    for (int c = 0; c < width; c += 32) sum(rows, columns_from(c, words, a, b), FirstSums{out + c, out_row}, out + c, out_row);
  }

 private:
  /// Sums 32 columns.
  template <class Finish>
  void sum(int rows, const RowsByColumns& factors, Finish finish, float* out, int64_t out_row) const {
    for (int r = 0; r < rows; r += kAtOnce)
      sum_products(rows - r < kAtOnce ? rows - r : kAtOnce, factors.from_row(r), finish.from_row(r), out + r * out_row, out_row);
  }
  static RowsByColumns columns_from(int c, int words, const Words& a, const Words& b) {
    return {.rows = a.data, .row = a.row, .left = b.data + c, .right = b.data + c + 16, .column = b.row, .words = words};
  }

  static constexpr int kAtOnce = lacuna::kMostRows;  // as many rows as stay in registers
};

/// The products of products.h, of factors in bf16.
template <class Multiplier>
class Bf16Products {
 public:
  static constexpr int kTile = Multiplier::kTileRows, kLowTile = kTile, kFirstKeys = 32;
  static constexpr int kDepth = 128;      ///< query rows that are gathered, at most
  static constexpr int kSparseShare = 0;  // these are faster than any product that leaves zeros out
  static constexpr bool kScalesGradients = true, kRounds = true;
  static_assert(kTile % KeptRows<float>::kRoundedRows == 0, "a tile's rows would be written over the next one's");

  static int64_t memory_elements(int64_t row, int64_t d_head) {
    return (3 * padded(d_head) / 2 + 2 * padded(d_head) + kTile + kDepth) * row + (3 * kTile / 2 + kDepth) * padded(d_head);
  }

  Bf16Products(const CallConstants<float>& call, const Task<float>& task, const Workspace<float>& workspace)
      : task_(task), scale_(call.scale), stride_(workspace.row), d_(call.d_head), padded_d_(padded(d_)), padded_keys_(padded(task.keys)) {
    float* memory = workspace.memory;
    const auto take = [&](int64_t elements) {
      float* taken = memory;
      memory += elements;
      return taken;
    };
    const auto take_words = [&](int64_t rows, int64_t row) { return Words{reinterpret_cast<uint32_t*>(take(rows * row)), row}; };
    keys_ = take_words(padded_d_ / 2, stride_);
    values_ = take_words(padded_d_ / 2, stride_);
    rows_ = take_words(stride_ / 2, padded_d_);
    for (Gathered* gathered : {&of_keys_, &of_values_}) {
      gathered->by_key = take_words(stride_, kDepth / 2);
      gathered->of_queries = take_words(kDepth / 2, padded_d_);
      gathered->sums = take(padded_d_ * stride_);
    }
    long_left_ = take_words(kTile, stride_ / 2);
    long_right_ = take_words(kTile / 2, stride_);
    short_left_ = take_words(kTile, padded_d_ / 2);
    result_ = take(padded_d_ * kTile);
    q_ = factor(task.q, &StoredTask::q);
    context_gradient_ = factor(task.context_gradient, &StoredTask::context_gradient);
  }

  void write_scores(const TileSpan& tile, float* scores) {
    pack_keys();
    pack_sentence();
    multiply_by_keys(tile, q_, keys_, scale_, scores);
  }
  void write_weight_gradient(const TileSpan& tile, float* gradient) {
    pack_sentence();
    multiply_by_keys(tile, context_gradient_, values_, 1, gradient);
  }
  /// Writes the context, from weights after dropout; without dropout, from those that keep_rounded packed, if any.
  void write_context(const TileSpan& tile, const float* weights) {
    const Words left = has_rounded() ? rounded_of(tile) : packed(tile, weights);
    write_rows(tile, left, 1, task_.context, stored_result(&StoredTask::context));
  }
  /// Keeps rows of weights before dropout for the backward pass.
  void keep_rounded(const TileSpan& tile, const float* weights) const { pack_rows(tile, weights, rounded_of(tile)); }
  void restore_rounded(const TileSpan& tile, float* weights) const {
    for (int r = 0; r < tile.rows; ++r) Packer::widen_row(tile.width, task_.kept_rows.rounded.row(tile.first + r), weights + r * stride_);
  }
  void write_gradients(const TileSpan& tile, const float* weights, const float* gradient) {
    const Words of_scores = packed(tile, gradient);
    write_rows(tile, of_scores, scale_, task_.q_gradient, stored_result(&StoredTask::q_gradient));
    make_room(tile);
    gather(tile, of_scores, q_, of_keys_);
    gather(tile, has_rounded() ? rounded_of(tile) : packed(tile, weights), context_gradient_, of_values_);
    gathered_.rows += padded(tile.rows);
  }
  void finish_gradients() {
    if (!is_packed_) return;
    sum_gathered();
    finish(of_keys_, scale_, task_.k_gradient, stored_result(&StoredTask::k_gradient));
    finish(of_values_, 1, task_.v_gradient, stored_result(&StoredTask::v_gradient));
  }

 private:
  using Factor = Packer::Rows;

  template <class Integer>
  static constexpr Integer padded(Integer size) {
    return (size + 31) / 32 * 32;
  }

  /// Returns rows of the task as they are: in float or, if it has such, in bf16.
  Factor factor(const Rows<const float>& rows, Rows<const uint16_t> StoredTask::*stored) const {
    if (task_.stored == nullptr) return {rows.data, nullptr, rows.stride};
    const auto& bits = task_.stored->*stored;
    return {nullptr, bits.data, bits.stride};
  }
  /// Returns where results go in bf16; null = they are written in float.
  const Rows<uint16_t>* stored_result(Rows<uint16_t> StoredTask::*rows) const {
    return task_.stored == nullptr ? nullptr : &(task_.stored->*rows);
  }

  // The factors of the sentence that all tiles read (where scores are needed, keys first). Scratch memory: the sums.

  void pack_keys() {
    if (has_keys_) return;
    has_keys_ = true;
    pack_transposed(factor(task_.k, &StoredTask::k), keys_);
  }
  void pack_sentence() {
    if (is_packed_) return;
    is_packed_ = true;
    const Factor k = factor(task_.k, &StoredTask::k), v = factor(task_.v, &StoredTask::v);
    if (!task_.is_backward) return Packer::pack_right(task_.keys, d_, v, padded_keys_, padded_d_, rows_);
    pack_transposed(v, values_);
    Packer::pack_right(task_.keys, d_, k, padded_keys_, padded_d_, rows_);
  }

  /// Packs rows of k or v as the columns of a right factor: words as they stand in a left one, transposed.
  void pack_transposed(const Factor& from, const Words& to) {
    const Words rows = {reinterpret_cast<uint32_t*>(of_keys_.sums), padded_d_ / 2};
    Packer::pack_left(task_.keys, d_, from, padded_keys_, padded_d_, rows);
    SimdMachine::transpose_words(padded_keys_, padded_d_ / 2, rows.data, rows.row, to.data, to.row);
  }

  /// to (rows, keys) = scale * from (rows, d) x by_key (d, keys)
  void multiply_by_keys(const TileSpan& tile, const Factor& from, Words by_key, float scale, float* to) {
    const Words left = {short_left_.data, padded_d_ / 2};
    Packer::pack_left(tile.rows, d_, from.from(tile.first), padded(tile.rows), padded_d_, left);
    by_key.data += tile.begin;
    multiplier_.multiply(tile.rows, padded_d_ / 2, padded(tile.width), left, by_key, scale, to, stride_);
  }

  /// Packs rows over the keys as a left factor, which begins at the tile's first key.
  void pack_rows(const TileSpan& tile, const float* rows, const Words& to) const {
    Packer::pack_left(tile.rows, tile.width, {rows, nullptr, stride_}, padded(tile.rows), padded(tile.width), to);
  }
  /// Returns the packed rows, valid until the next call.
  Words packed(const TileSpan& tile, const float* rows) const {
    pack_rows(tile, rows, long_left_);
    return long_left_;
  }
  /// Returns where the tile's weights are kept, as a left factor.
  Words rounded_of(const TileSpan& tile) const {
    const Rows<uint16_t>& kept = task_.kept_rows.rounded;
    return {reinterpret_cast<uint32_t*>(kept.data) + tile.first * (kept.stride / 2), kept.stride / 2};
  }
  /// Returns true if weights are multiplied as they are kept.
  bool has_rounded() const { return task_.kept_rows.rounded.data != nullptr && task_.dropout == nullptr; }

  /// to (rows, d), or if that is not null `stored`, = scale * by_key (rows, keys) x rows_ (keys, d)
  void write_rows(const TileSpan& tile, const Words& by_key, float scale, const Rows<float>& to, const Rows<uint16_t>* stored) {
    Words right = rows_;
    right.data += tile.begin / 2 * right.row;
    multiplier_.multiply(tile.rows, padded(tile.width) / 2, padded_d_, by_key, right, stored != nullptr ? 1 : scale, result_, padded_d_);
    for (int r = 0; r < tile.rows; ++r) {
      const float* const from = result_ + r * padded_d_;
      if (stored != nullptr) {
        Packer::round_row(d_, scale, from, stored->row(tile.first + r));
      } else {
        SimdMachine::copy(d_, from, to.row(tile.first + r));
      }
    }
  }

  // The gradients of k and v are sums over queries: by_key (rows, keys)^T x of_queries (rows, d). Tiles over the same
  // keys are gathered first, so that a sum stays in registers for as many rows as there is room for.

  /// The rows gathered for one of these sums.
  struct Gathered {
    Words by_key;      ///< [keys, kDepth] as a left factor, which begins at the tiles' first key
    Words of_queries;  ///< [kDepth, d] as a right factor
    float* sums;       ///< [keys, d]
  };

  /// Sums the gathered rows if this tile's cannot be added to them.
  void make_room(const TileSpan& tile) {
    const bool fits = tile.begin == gathered_.begin && tile.width == gathered_.width && gathered_.rows + padded(tile.rows) <= kDepth;
    if (!fits) sum_gathered();
    gathered_.begin = tile.begin;
    gathered_.width = tile.width;
  }
  void gather(const TileSpan& tile, const Words& by_key, const Factor& of_queries, const Gathered& to) {
    const int width = padded(tile.width), depth = padded(tile.rows), first = gathered_.rows / 2;
    Packer::pack_right(depth, width, {nullptr, reinterpret_cast<const uint16_t*>(by_key.data), 2 * by_key.row}, depth, width, long_right_);
    SimdMachine::transpose_words(depth / 2, width, long_right_.data, long_right_.row, to.by_key.data + first, to.by_key.row);
    Packer::pack_right(tile.rows, d_, of_queries.from(tile.first), depth, padded_d_,
                       {to.of_queries.data + first * to.of_queries.row, to.of_queries.row});
  }
  void sum_gathered() {
    if (gathered_.rows == 0) return;
    const bool is_all = !has_sums_ && gathered_.begin == 0 && gathered_.width == task_.keys;  // of other keys there would be no sums
    for (const Gathered* from : {&of_keys_, &of_values_}) {
      if (!has_sums_ && !is_all) SimdMachine::clear(padded_keys_ * padded_d_, from->sums);
      float* const sums = from->sums + gathered_.begin * padded_d_;
      const int words = gathered_.rows / 2;
      if (is_all) {
        multiplier_.multiply(gathered_.width, words, padded_d_, from->by_key, from->of_queries, 1, sums, padded_d_);
      } else {
        multiplier_.multiply_add(gathered_.width, words, padded_d_, from->by_key, from->of_queries, sums, padded_d_);
      }
    }
    has_sums_ = true;
    gathered_.rows = 0;
  }

  /// gradient (keys, d) += scale * sums, or if that is not null, `stored` = scale * sums
  void finish(const Gathered& from, float scale, const Rows<float>& gradient, const Rows<uint16_t>* stored) {
    for (int j = 0; j < task_.keys; ++j) {
      const float* const sums = from.sums + j * padded_d_;
      if (stored != nullptr) {
        Packer::round_row(d_, scale, sums, stored->row(j));
      } else {
        for (int c = 0; c < d_; ++c) gradient.row(j)[c] += scale * sums[c];
      }
    }
  }

  const Multiplier multiplier_ = {};
  const Task<float>& task_;
  const float scale_;
  const int64_t stride_;
  const int d_, padded_d_, padded_keys_;
  bool has_keys_ = false, is_packed_ = false, has_sums_ = false;
  Words keys_, values_;  // [d, keys] as right factors; values in the backward pass only
  Words rows_;           // [keys, d] as a right factor: values, in the backward pass keys
  Gathered of_keys_, of_values_;
  TileSpan gathered_ = {};        // how many rows are gathered, over which keys
  Words long_left_, long_right_;  // of rows over the keys, as a left and as a right factor
  Words short_left_;              // of the tile's queries
  float* result_;                 // [kTile, d]
  Factor q_, context_gradient_;
};

}  // namespace LACUNA_SIMD_NAMESPACE

using LACUNA_SIMD_NAMESPACE::Bf16Products, LACUNA_SIMD_NAMESPACE::TileMultiplier, LACUNA_SIMD_NAMESPACE::VectorMultiplier;

}  // namespace lacuna::core
