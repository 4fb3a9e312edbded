#pragma once

// A row in vectors of floats. Included only by files that are compiled once per instruction set.

#include <hwy/highway.h>

#include <concepts>
#include <limits>
#include <utility>

#include "attention/rows/lanes_simd.h"
#include "attention/rows/many_rows_simd.h"

namespace lacuna::types {
namespace HWY_NAMESPACE {

/// Writes the lanes of `values` where `mask` is set, one after the other from `to` on, and returns how many they are.
/// hwy::CompressStore may become an instruction that is slow where it writes to memory; compressed in a register and
/// then stored is fast everywhere.
HWY_INLINE int compress_store(Vector values, hn::Mask<Tag> mask, float* to) {
#if HWY_TARGET <= HWY_AVX3
  const size_t count = hn::CountTrue(Tag(), mask);
  hn::BlendedStore(hn::Compress(values, mask), hn::FirstN(Tag(), count), Tag(), to);
  return static_cast<int>(count);
#else
  return static_cast<int>(hn::CompressStore(values, mask, Tag(), to));
#endif
}

/// A row of floats in cache. Elements from `length` on, up to a whole vector, may be read and overwritten but never
/// count.
struct SimdRow {
  using scalar = float;
  using Transposed = TransposedRows;  ///< many short rows, one in each lane
  static constexpr float tolerance = 2e-7f;

  float* data;
  int length;
  const float* positions = nullptr;  ///< of the keys
  float* scratch = nullptr;          ///< room for `length` elements and a vector

  HWY_INLINE int size() const { return length; }
  HWY_INLINE float max() const {
    return max([](Lanes x) { return x; });
  }
  template <class F>
  HWY_INLINE float max(F f) const {
    const Vector lowest = hn::Set(Tag(), -std::numeric_limits<float>::infinity());
    const int whole = whole_vectors(), step = 4 * width();
    Vector w = lowest, x = lowest, y = lowest, z = lowest;  // a single maximum would wait for itself at each vector
    int i = 0;
    for (; i + step <= whole; i += step) {
      w = hn::Max(w, f(at(i)).v);
      x = hn::Max(x, f(at(i + width())).v);
      y = hn::Max(y, f(at(i + 2 * width())).v);
      z = hn::Max(z, f(at(i + 3 * width())).v);
    }
    Vector top = hn::Max(hn::Max(w, x), hn::Max(y, z));
    for (; i < whole; i += width()) top = hn::Max(top, f(at(i)).v);
    if (whole < length) top = hn::Max(top, hn::IfThenElse(rest(), f(at(whole)).v, lowest));
    return hn::GetLane(hn::MaxOfLanes(Tag(), top));
  }
  template <class F>
  HWY_INLINE float sum(F f) const {
    float total;
    sum_terms([=, from = data](int i, auto& term) { term = f(load(from + i)); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F>
  HWY_INLINE float sum(SimdRow other, F f) const {
    float total;
    sum_terms([=, from = data](int i, auto& term) { term = f(load(from + i), load(other.data + i)); }, std::index_sequence<0>(), total);
    return total;
  }
  template <class F>
  HWY_INLINE float sum_indexed(F f) const {
    float total;
    sum_terms([=, from = data, keys = positions](int i, auto& term) { term = f(load(from + i), load(keys + i)); }, std::index_sequence<0>(),
              total);
    return total;
  }
  template <class F, std::same_as<float>... Totals>
  HWY_INLINE void sums(F f, Totals&... totals) const {
    sum_terms([=, from = data](int i, auto&... term) { f(load(from + i), term...); }, std::make_index_sequence<sizeof...(Totals)>(),
              totals...);
  }
  template <class F, std::same_as<float>... Totals>
  HWY_INLINE void sums(SimdRow other, F f, Totals&... totals) const {
    sum_terms([=, from = data](int i, auto&... term) { f(load(from + i), load(other.data + i), term...); },
              std::make_index_sequence<sizeof...(Totals)>(), totals...);
  }
  template <class F>
  HWY_INLINE void map(F f) const {
    for (int i = 0; i < length; i += width()) hn::StoreU(f(at(i)).v, Tag(), data + i);
  }
  template <class F>
  HWY_INLINE void map(SimdRow other, F f) const {
    for (int i = 0; i < length; i += width()) hn::StoreU(f(at(i), other.at(i)).v, Tag(), data + i);
  }
  template <class F>
  HWY_INLINE float map_and_sum(F f) const {
    float total;
    sum_terms(
        [=, to = data](int i, auto& term) {
          term = f(load(to + i));
          hn::StoreU(term.v, Tag(), to + i);
        },
        std::index_sequence<0>(), total);
    return total;
  }
  template <class F>
  HWY_INLINE void map_indexed(F f) const {
    for (int i = 0; i < length; i += width()) hn::StoreU(f(at(i), Lanes{hn::LoadU(Tag(), positions + i)}).v, Tag(), data + i);
  }
  template <class F>
  HWY_INLINE SimdRow pack(F keep) const {
    int kept = 0;
    for (int i = 0; i < length; i += width()) {
      const auto mask = hn::And(hn::Ne(keep(at(i)).v, hn::Zero(Tag())), hn::FirstN(Tag(), static_cast<size_t>(length - i)));
      kept += compress_store(at(i).v, mask, scratch + kept);
    }
    return {scratch, kept, nullptr, scratch};
  }

 private:
  static HWY_INLINE int width() { return static_cast<int>(hn::Lanes(Tag())); }
  HWY_INLINE int whole_vectors() const { return length & -width(); }
  static HWY_INLINE Lanes load(const float* from) { return {hn::LoadU(Tag(), from)}; }
  HWY_INLINE Lanes at(int i) const { return load(data + i); }
  HWY_INLINE hn::Mask<Tag> rest() const { return hn::FirstN(Tag(), static_cast<size_t>(length & (width() - 1))); }

  /// Sums the terms that f(i, terms...) sets for the vector at i, in blocks: thousands of equal terms would round the
  /// same way each time.
  template <class F, size_t... I, class... Totals>
  HWY_INLINE void sum_terms(F f, std::index_sequence<I...>, Totals&... totals) const {
    Lanes total[] = {((void)I, Lanes(0))...}, term[sizeof...(I)];
    const int whole = whole_vectors(), block = 16 * width();
    for (int begin = 0; begin < whole; begin += block) {
      Lanes part[] = {((void)I, Lanes(0))...};
      const int end = begin + block < whole ? begin + block : whole;
      for (int i = begin; i < end; i += width()) {
        f(i, term[I]...);
        ((part[I] = part[I] + term[I]), ...);
      }
      ((total[I] = total[I] + part[I]), ...);
    }
    if (whole < length) {
      f(whole, term[I]...);
      ((total[I].v = hn::Add(total[I].v, hn::IfThenElseZero(rest(), term[I].v))), ...);
    }
    ((totals = hn::GetLane(hn::SumOfLanes(Tag(), total[I].v))), ...);
  }
};

}  // namespace HWY_NAMESPACE

using HWY_NAMESPACE::SimdRow;

}  // namespace lacuna::types
