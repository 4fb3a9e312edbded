#pragma once

// Rows in vectors of floats: one, or many, one in each lane. Included only by files compiled once per instruction set.

#include <hwy/highway.h>

#include <concepts>
#include <limits>
#include <utility>

#include "attention/rows/lanes_simd.h"
#include "attention/rows/row_functions.h"
#include "attention/rows/transpose_simd.h"

namespace lacuna::types {
namespace HWY_NAMESPACE {

/// A set of rows, one in each lane of a vector: element i of all is a vector, and so is every sum over them. What is
/// sequential in a short row (a sum's lanes, a search's steps) is done for all. A row's bits do not depend on others.
struct SimdRows {
  using scalar = Lanes;
  static constexpr float tolerance = 2e-7f;
  static constexpr int kMost = hn::MaxLanes(Tag());  ///< rows

  float* data;       ///< [length, rows]
  int length;        ///< of the longest
  Lanes row_length;  ///< of each row: elements behind it never count

  HWY_INLINE int size() const { return length; }
  template <class F>
  HWY_INLINE Lanes of_sizes(F f) const {
    alignas(64) float sizes[kMost];
    hn::Store(row_length.v, Tag(), sizes);
    for (float& size : sizes) size = static_cast<float>(f(static_cast<int>(size)));
    return hn::Load(Tag(), sizes);
  }
  HWY_INLINE Lanes max() const {
    return max([](Lanes x) { return x; });
  }
  template <class F>
  HWY_INLINE Lanes max(F f) const {
    const Lanes lowest = -std::numeric_limits<float>::infinity();
    Lanes top = lowest;
    for_each(0, length, [&](int i, LanesMask is_there) { top = hn::Max(top.v, select(is_there, f(at(i)), lowest).v); });
    return top;
  }
  template <class F>
  HWY_INLINE Lanes sum(F f) const {
    Lanes total;
    sums([=](Lanes x, Lanes& term) { term = f(x); }, total);
    return total;
  }
  template <class F, std::same_as<Lanes>... Totals>
  HWY_INLINE void sums(F f, Totals&... totals) const {
    sum_terms([=, this](int i, auto&... term) { f(at(i), term...); }, std::make_index_sequence<sizeof...(Totals)>(), totals...);
  }
  template <class F>
  HWY_INLINE void map(F f) const {
    for (int i = 0; i < length; ++i) put(i, f(at(i)));
  }
  template <class F>
  HWY_INLINE Lanes map_and_sum(F f) const {
    Lanes total;
    sum_terms([=, this](int i, Lanes& term) { put(i, term = f(at(i))); }, std::index_sequence<0>(), total);
    return total;
  }

 private:
  HWY_INLINE Lanes at(int i) const { return hn::Load(Tag(), data + i * kMost); }
  HWY_INLINE void put(int i, Lanes x) const { hn::Store(x.v, Tag(), data + i * kMost); }

  /// Calls f(i, mask of the rows that have an element i) for i from begin to end - 1.
  template <class F>
  HWY_INLINE void for_each(int begin, int end, F f) const {
    Lanes number = static_cast<float>(begin);
    for (int i = begin; i < end; ++i, number = number + 1) f(i, number < row_length);
  }
  template <class F, size_t... I, class... Totals>
  HWY_INLINE void sum_terms(F f, std::index_sequence<I...>, Totals&... totals) const {
    constexpr int kPart = 8;  // a single chain of sums would lose precision
    Lanes total[] = {((void)I, Lanes(0))...}, term[sizeof...(I)];
    for (int begin = 0; begin < length; begin += kPart) {
      Lanes part[] = {((void)I, Lanes(0))...};
      for_each(begin, begin + kPart < length ? begin + kPart : length, [&](int i, LanesMask is_there) {
        f(i, term[I]...);
        ((part[I].v = hn::Add(part[I].v, hn::IfThenElseZero(is_there.m, term[I].v))), ...);
      });
      ((total[I] = total[I] + part[I]), ...);
    }
    ((totals = total[I]), ...);
  }
};

/// Copies of rows that lie apart, transposed for a forward pass with a row in each lane.
class TransposedRows {
 public:
  static constexpr int kMostRows = SimdRows::kMost;
  static constexpr int kLongest = 64;     ///< longer rows fill vectors alone
  static constexpr int kMostNumbers = 2;  ///< learned numbers of a row

  /// Copies `count` rows, up to kMostRows; the lanes that are left over hold the first row again.
  HWY_INLINE TransposedRows(const RowPlace<float>* const* places, int count) : count_(count) {
    int shortest = places[0]->length;
    for (int r = 0; r < kMostRows; ++r) {
      places_[r] = places[r < count ? r : 0];
      weights_[r] = places_[r]->weights;
      const int length = places_[r]->length;
      length_ = length > length_ ? length : length_;
      shortest = length < shortest ? length : shortest;
    }
    int i = 0;
    for (; i < shortest; i += kMostRows)  // a whole vector of each may be read
      for (int j = i; j < i + kMostRows; j += 4) load_columns(j, [&](int r) { return weights_[r] + j; });
    for (; i < length_; i += 4) load_columns(i, [&](int r) { return weights_[r] + (i < places_[r]->length ? i : 0); });
  }
  HWY_INLINE SimdRows rows() {
    return {elements_, length_, of_each([](const RowPlace<float>& place) { return static_cast<float>(place.length); })};
  }
  /// Returns the context of all rows; `shared` holds what they have in common. To be called once.
  HWY_INLINE RowContext<Lanes> context(const RowContext<float>& shared) {
    RowContext<Lanes> context;
    context.training = shared.training;
    context.position = of_each([](const RowPlace<float>& place) { return place.position; });
    context.num_numbers = shared.num_numbers;
    for (int n = 0; n < shared.num_numbers; ++n) numbers_[n] = of_each([=](const RowPlace<float>& place) { return place.numbers[n]; });
    context.numbers = numbers_;
    context.is_recomputed = shared.is_recomputed;
    if (places_[0]->kept_number == nullptr) return context;
    is_kept_ = !shared.is_recomputed;
    if (!is_kept_) kept_ = of_each([](const RowPlace<float>& place) { return *place.kept_number; });
    context.kept_number = &kept_;
    return context;
  }
  /// Writes the rows, and the numbers to be kept, back to where they come from.
  HWY_INLINE void store_rows() {
    for (int r = 0; r < count_; r += 4)
      for (int i = 0; i < length_; i += kMostRows)
        lacuna::HWY_NAMESPACE::transpose_four(
            Tag(), [&](int j) { return elements_ + (i + j) * kMostRows + r; },
            [&](int c, Vector x) {
              if (r + c < count_ && i < places_[r + c]->length) hn::StoreU(x, Tag(), weights_[r + c] + i);
            });
    if (!is_kept_) return;
    alignas(64) float kept[kMostRows];
    hn::Store(kept_.v, Tag(), kept);
    for (int r = 0; r < count_; ++r) *places_[r]->kept_number = kept[r];
  }

 private:
  /// Transposes elements i to i + 3 of all rows.
  template <class From>
  HWY_INLINE void load_columns(int i, From from) {
    lacuna::HWY_NAMESPACE::transpose_four(Tag(), from, [&](int c, Vector x) { hn::Store(x, Tag(), elements_ + (i + c) * kMostRows); });
  }
  template <class F>
  HWY_INLINE Lanes of_each(F f) const {
    alignas(64) float values[kMostRows];
    for (int r = 0; r < kMostRows; ++r) values[r] = f(*places_[r]);
    return hn::Load(Tag(), values);
  }

  const RowPlace<float>* places_[kMostRows];
  float* weights_[kMostRows];
  int count_, length_ = 0;
  bool is_kept_ = false;
  Lanes numbers_[kMostNumbers], kept_ = 0;
  alignas(64) float elements_[(kLongest + kMostRows) * kMostRows];
};

/// Writes the lanes of `values` where `mask` is set, one after the other from `to` on, and returns how many they are.
/// hwy::CompressStore may be an instruction that is slow in memory; compressed in a register, then stored is fast.
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
