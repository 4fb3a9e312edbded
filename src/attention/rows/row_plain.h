#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "attention/rows/row.h"

namespace lacuna::types {

/// A row in plain loops: with double, the row of gradient checks and of the reference.
template <std::floating_point T>
struct PlainRow {
  using scalar = T;
  static constexpr T tolerance = 64 * std::numeric_limits<T>::epsilon();

  T* data;
  int length;
  const T* positions = nullptr;  ///< of the keys
  T* scratch = nullptr;          ///< room for `length` elements

  int size() const { return length; }
  T max() const {
    return max([](T x) { return x; });
  }
  template <class F>
  T max(F f) const {
    T top = -std::numeric_limits<T>::infinity();
    for (int i = 0; i < length; ++i) top = std::max(top, f(data[i]));
    return top;
  }
  template <class F>
  T sum(F f) const {
    T total = 0;
    for (int i = 0; i < length; ++i) total += f(data[i]);
    return total;
  }
  template <class F>
  T sum(PlainRow other, F f) const {
    T total = 0;
    for (int i = 0; i < length; ++i) total += f(data[i], other.data[i]);
    return total;
  }
  template <class F>
  T sum_indexed(F f) const {
    T total = 0;
    for (int i = 0; i < length; ++i) total += f(data[i], positions[i]);
    return total;
  }
  template <class F, std::same_as<T>... Totals>
  void sums(F f, Totals&... totals) const {
    T total[sizeof...(Totals)] = {};
    for (int i = 0; i < length; ++i) add_terms(f, total, std::make_index_sequence<sizeof...(Totals)>(), data[i]);
    int i = 0;
    ((totals = total[i++]), ...);
  }
  template <class F, std::same_as<T>... Totals>
  void sums(PlainRow other, F f, Totals&... totals) const {
    T total[sizeof...(Totals)] = {};
    for (int i = 0; i < length; ++i) add_terms(f, total, std::make_index_sequence<sizeof...(Totals)>(), data[i], other.data[i]);
    int i = 0;
    ((totals = total[i++]), ...);
  }
  template <class F>
  void map(F f) const {
    for (int i = 0; i < length; ++i) data[i] = f(data[i]);
  }
  template <class F>
  void map(PlainRow other, F f) const {
    for (int i = 0; i < length; ++i) data[i] = f(data[i], other.data[i]);
  }
  template <class F>
  T map_and_sum(F f) const {
    map(f);
    return sum([](T x) { return x; });
  }
  template <class F>
  void map_indexed(F f) const {
    for (int i = 0; i < length; ++i) data[i] = f(data[i], positions[i]);
  }
  template <class F>
  PlainRow pack(F keep) const {
    int kept = 0;
    for (int i = 0; i < length; ++i)
      if (keep(data[i]) != 0) scratch[kept++] = data[i];
    return {scratch, kept, nullptr, scratch};
  }

 private:
  template <class F, size_t... I, std::same_as<T>... X>
  static void add_terms(F f, T* total, std::index_sequence<I...>, X... x) {
    T term[sizeof...(I)];
    f(x..., term[I]...);
    ((total[I] += term[I]), ...);
  }
};

}  // namespace lacuna::types
