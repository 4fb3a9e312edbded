#pragma once

#include <concepts>
#include <limits>
#include <utility>

#include "attention/gpu/block.h"

namespace lacuna::cuda {

/// A row (attention/rows/row.h) that a warp shares: lane i works on elements i, i + lanes, ... Every lane calls every function.
template <class Block>
struct WarpRow {
  using scalar = float;
  static constexpr float tolerance = 2e-7f;

  float* data;
  int length;
  const float* positions = nullptr;  ///< of the keys
  float* scratch = nullptr;          ///< room for `length` elements
  Block block = {};

  LACUNA_HD int size() const { return length; }
  LACUNA_HD float max() const {
    return max([](float x) { return x; });
  }
  template <class F>
  LACUNA_HD float max(F f) const {
    float top = -std::numeric_limits<float>::infinity();
    for_each([&](int i) {
      const float x = f(data[i]);
      top = x > top ? x : top;
    });
    return block.max(top);
  }
  template <class F>
  LACUNA_HD float sum(F f) const {
    float total;
    sum_terms([&](int i, float& term) { term = f(data[i]); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F>
  LACUNA_HD float sum(WarpRow other, F f) const {
    float total;
    sum_terms([&](int i, float& term) { term = f(data[i], other.data[i]); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F>
  LACUNA_HD float sum_indexed(F f) const {
    float total;
    sum_terms([&](int i, float& term) { term = f(data[i], positions[i]); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F, std::same_as<float>... Totals>
  LACUNA_HD void sums(F f, Totals&... totals) const {
    sum_terms([&](int i, auto&... term) { f(data[i], term...); }, std::make_index_sequence<sizeof...(Totals)>(), totals...);
  }
  template <class F, std::same_as<float>... Totals>
  LACUNA_HD void sums(WarpRow other, F f, Totals&... totals) const {
    sum_terms([&](int i, auto&... term) { f(data[i], other.data[i], term...); }, std::make_index_sequence<sizeof...(Totals)>(), totals...);
  }
  template <class F>
  LACUNA_HD void map(F f) const {
    for_each([&](int i) { data[i] = f(data[i]); });
  }
  template <class F>
  LACUNA_HD void map(WarpRow other, F f) const {
    for_each([&](int i) { data[i] = f(data[i], other.data[i]); });
  }
  template <class F>
  LACUNA_HD float map_and_sum(F f) const {
    float total;
    sum_terms([&](int i, float& term) { term = data[i] = f(data[i]); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F>
  LACUNA_HD void map_indexed(F f) const {
    for_each([&](int i) { data[i] = f(data[i], positions[i]); });
  }
  template <class F>
  LACUNA_HD WarpRow pack(F keep) const {
    int kept = 0;
    for (int begin = 0; begin < length; begin += Block::kLanes) {
      const int i = begin + block.lane();
      const float x = i < length ? data[i] : 0.f;  // before another lane writes there
      const bool is_kept = i < length && keep(x) != 0;
      int total;
      const int rank = block.rank(is_kept, total);
      block.sync_warp();  // all have read what another lane may write over
      if (is_kept) scratch[kept + rank] = x;
      kept += total;
    }
    block.sync_warp();  // other lanes will read
    return {scratch, kept, nullptr, scratch, block};
  }

 private:
  template <class F>
  LACUNA_HD void for_each(F f) const {
    for (int i = block.lane(); i < length; i += Block::kLanes) f(i);
  }

  /// Sums the terms that f(i, terms...) sets. Works in blocks: thousands of equal terms would otherwise round the same way each time.
  template <class F, size_t... I, class... Totals>
  LACUNA_HD void sum_terms(F f, std::index_sequence<I...>, Totals&... totals) const {
    constexpr int kTogether = 16 * Block::kLanes;
    double total[] = {((void)I, 0.)...};
    for (int begin = 0; begin < length; begin += kTogether) {
      const int end = begin + kTogether < length ? begin + kTogether : length;
      float part[] = {((void)I, 0.f)...}, term[sizeof...(I)];
      for (int i = begin + block.lane(); i < end; i += Block::kLanes) {
        f(i, term[I]...);
        ((part[I] += term[I]), ...);
      }
      ((total[I] += static_cast<double>(part[I])), ...);
    }
    ((totals = block.sum(static_cast<float>(total[I]))), ...);
  }
};

}  // namespace lacuna::cuda
