#pragma once

#include <concepts>
#include <limits>
#include <utility>

#include "attention/gpu/per_row.h"

namespace lacuna::cuda {

/// A set of the elements that a lane holds of kTile rows (lane_layout.h): a bit for each.
template <class Block, int kWidth>
class ElementSet {
 public:
  /// Adds those of the lane's row r whose column holds(column) is true for.
  template <class F>
  LACUNA_HD void add(int lane, int r, F holds) {
    LACUNA_UNROLL
    for (int word = 0; word < kWords; ++word) {
      uint32_t bits = 0;
      for (int i = 0; i < kBits && kBits * word + i < kOwn; ++i)
        bits |= static_cast<uint32_t>(holds(Layout::column(lane, kBits * word + i))) << i;
      bits_[r][word] |= bits;
    }
  }

  /// Returns true if none of the lane's elements in row r is in the set.
  LACUNA_HD bool is_empty(int r) const {
    uint32_t bits = 0;
    LACUNA_UNROLL
    for (int word = 0; word < kWords; ++word) bits |= bits_[r][word];
    return bits == 0;
  }
  /// Returns for each row whether its element in the lane's i-th column is in the set.
  LACUNA_HD TruthPerRow<Block> at(int i) const {
    TruthPerRow<Block> result;
    LACUNA_UNROLL
    for (int r = 0; r < Layout::kRows; ++r) result.of[r] = (bits_[r][i / kBits] >> (i % kBits) & 1) != 0;
    return result;
  }

 private:
  using Layout = LaneLayout<Block>;
  static constexpr int kOwn = Layout::share(kWidth), kBits = 32, kWords = (kOwn + kBits - 1) / kBits;
  uint32_t bits_[Layout::kRows][kWords] = {};
};

/// The rows (attention/rows/row.h) of a matrix of kTile x kWidth numbers in the registers of a warp: all of them at once, as the CPU's
/// rows side by side (row_simd.h). A row's bits depend neither on the other rows nor on kWidth. Every lane calls every function.
template <class Block, int kWidth>
struct RegisterRow {
  using scalar = PerRow<Block>;
  static constexpr float tolerance = 2e-7f;

  scalar* data;                           ///< the lane's columns
  const ElementSet<Block, kWidth>* keys;  ///< that count, at least one in each row
  const Block* block;

  LACUNA_HD int size() const { return kWidth; }
  /// Returns f(number of the row's keys) for each row.
  template <class F>
  LACUNA_HD scalar of_sizes(F f) const {
    const scalar sizes = sum([](scalar) { return scalar(1); });
    return sizes.each([=](float size) { return static_cast<float>(f(static_cast<int>(size))); });
  }
  LACUNA_HD scalar max() const {
    return max([](scalar x) { return x; });
  }
  template <class F>
  LACUNA_HD scalar max(F f) const {
    const scalar lowest = -std::numeric_limits<float>::infinity();
    scalar top = lowest;
    LACUNA_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const scalar x = select(keys->at(i), f(data[i]), lowest);
      top = select(x > top, x, top);
    }
    return top.each([this](float x) { return block->max_of_row(x); });
  }
  template <class F>
  LACUNA_HD scalar sum(F f) const {
    scalar total;
    sum_terms([&](int i, scalar& term) { term = f(data[i]); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F>
  LACUNA_HD scalar sum(RegisterRow other, F f) const {
    scalar total;
    sum_terms([&](int i, scalar& term) { term = f(data[i], other.data[i]); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F>
  LACUNA_HD scalar sum_indexed(F f) const {
    scalar total;
    sum_terms([&](int i, scalar& term) { term = f(data[i], position(i)); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F, std::same_as<scalar>... Totals>
  LACUNA_HD void sums(F f, Totals&... totals) const {
    sum_terms([&](int i, auto&... term) { f(data[i], term...); }, std::make_index_sequence<sizeof...(Totals)>(), totals...);
  }
  template <class F, std::same_as<scalar>... Totals>
  LACUNA_HD void sums(RegisterRow other, F f, Totals&... totals) const {
    sum_terms([&](int i, auto&... term) { f(data[i], other.data[i], term...); }, std::make_index_sequence<sizeof...(Totals)>(), totals...);
  }
  template <class F>
  LACUNA_HD void map(F f) const {
    LACUNA_UNROLL
    for (int i = 0; i < kOwn; ++i) data[i] = f(data[i]);
  }
  template <class F>
  LACUNA_HD void map(RegisterRow other, F f) const {
    LACUNA_UNROLL
    for (int i = 0; i < kOwn; ++i) data[i] = f(data[i], other.data[i]);
  }
  template <class F>
  LACUNA_HD scalar map_and_sum(F f) const {
    scalar total;
    sum_terms([&](int i, scalar& term) { term = data[i] = f(data[i]); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F>
  LACUNA_HD void map_indexed(F f) const {
    LACUNA_UNROLL
    for (int i = 0; i < kOwn; ++i) data[i] = f(data[i], position(i));
  }

 private:
  using Layout = LaneLayout<Block>;
  static constexpr int kOwn = Layout::share(kWidth);

  LACUNA_HD scalar position(int i) const {
    return static_cast<float>(Layout::column(block->lane(), 0)) + static_cast<float>(Layout::column(0, i));
  }

  /// Sums the terms that f(i, terms...) sets, in parts: a single chain of sums would lose precision.
  template <class F, size_t... I, class... Totals>
  LACUNA_HD void sum_terms(F f, std::index_sequence<I...>, Totals&... totals) const {
    constexpr int kPart = 8;
    scalar total[] = {((void)I, scalar(0))...}, part[] = {((void)I, scalar(0))...}, term[sizeof...(I)];
    LACUNA_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      f(i, term[I]...);
      ((part[I] += select(keys->at(i), term[I], scalar(0))), ...);
      if (i % kPart < kPart - 1) continue;
      ((total[I] += part[I]), ...);
      ((part[I] = scalar(0)), ...);
    }
    ((totals = total[I].each([this](float x) { return block->sum_of_row(x); })), ...);
  }
};

}  // namespace lacuna::cuda
