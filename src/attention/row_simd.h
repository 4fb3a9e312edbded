#pragma once

// A row in cache, in vectors of floats. Included only by files that are compiled once per instruction set, by compiler flags: Highway's
// static target puts everything here in a namespace of its own for each.

#include <hwy/highway.h>

#include <concepts>
#include <limits>
#include <utility>

#include "attention/row.h"
#include "attention/store_wanted.h"

namespace lacuna::types {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

/// A vector of floats with the operators that row maps are written with.
struct Lanes {
  Vector v;
};
HWY_INLINE Lanes all(float x) {
  return {hn::Set(Tag(), x)};
}
HWY_INLINE Lanes operator+(Lanes a, Lanes b) {
  return {hn::Add(a.v, b.v)};
}
HWY_INLINE Lanes operator-(Lanes a, Lanes b) {
  return {hn::Sub(a.v, b.v)};
}
HWY_INLINE Lanes operator*(Lanes a, Lanes b) {
  return {hn::Mul(a.v, b.v)};
}
HWY_INLINE Lanes operator/(Lanes a, Lanes b) {
  return {hn::Div(a.v, b.v)};
}
HWY_INLINE Lanes operator-(Lanes a) {
  return {hn::Neg(a.v)};
}
HWY_INLINE Lanes operator+(Lanes a, float b) {
  return a + all(b);
}
HWY_INLINE Lanes operator-(Lanes a, float b) {
  return a - all(b);
}
HWY_INLINE Lanes operator*(Lanes a, float b) {
  return a * all(b);
}
HWY_INLINE Lanes operator+(float a, Lanes b) {
  return all(a) + b;
}
HWY_INLINE Lanes operator-(float a, Lanes b) {
  return all(a) - b;
}
HWY_INLINE Lanes operator*(float a, Lanes b) {
  return all(a) * b;
}
HWY_INLINE Lanes operator/(Lanes a, float b) {
  return a / all(b);
}
HWY_INLINE Lanes operator/(float a, Lanes b) {
  return all(a) / b;
}
HWY_INLINE Lanes relu(Lanes x) {
  return {hn::Max(hn::Zero(Tag()), x.v)};  // in this order NaN stays
}
HWY_INLINE Lanes is_positive(Lanes x) {
  return {hn::IfThenElseZero(hn::Gt(x.v, hn::Zero(Tag())), hn::Set(Tag(), 1.f))};
}
HWY_INLINE Lanes is_at_least(Lanes x, float bound) {
  return {hn::IfThenElseZero(hn::Ge(x.v, hn::Set(Tag(), bound)), hn::Set(Tag(), 1.f))};
}
HWY_INLINE Lanes if_below(Lanes x, float bound, float otherwise) {
  return {hn::IfThenElse(hn::Lt(x.v, hn::Set(Tag(), bound)), x.v, hn::Set(Tag(), otherwise))};
}

// Powers and exponentials without the care for infinite, denormal and, in logarithms, negative numbers that Highway's own take, for which
// row maps have no use: in half the time.

using IntTag = hn::RebindToSigned<Tag>;
using IntVector = hn::Vec<IntTag>;

/// x = whole + rest, with the nearest integer, which stands in the lowest bits of `shifted`.
struct RoundedLanes {
  static constexpr float kRounds = 0x1.8p23f;
  Lanes shifted;
  Lanes whole() const { return shifted - kRounds; }
};
/// 2^(whole + rest), the rest within a half; 0 unless `wanted`.
HWY_INLINE Lanes scaled_power(RoundedLanes whole, Lanes rest, hn::Mask<Tag> wanted) {
  const Lanes r = rest, r2 = r * r;
  const Lanes power = 1.f + r * ((r * 0.2402264792f + 0.6931472028f) + (r * 0.009618436384f + 0.05550332546f) * r2 +
                                 (r * 0.0001535359947f + 0.001339885198f) * (r2 * r2));
  const IntVector exponent = hn::ShiftLeft<23>(hn::BitCast(IntTag(), whole.shifted.v));
  return {hn::IfThenElseZero(wanted, hn::BitCast(Tag(), hn::Add(hn::BitCast(IntTag(), power.v), exponent)))};
}
/// 0 where it would be denormal; x < 88.
HWY_INLINE Lanes exponential(Lanes x) {
  constexpr float kBinary = 1.44269502f, kBeyondFloat = 1.92596303e-8f;  // their sum is 1 / ln 2
  const RoundedLanes whole = {{hn::MulAdd(x.v, hn::Set(Tag(), kBinary), hn::Set(Tag(), RoundedLanes::kRounds))}};
  const Vector rest = hn::MulSub(x.v, hn::Set(Tag(), kBinary), whole.whole().v);
  return scaled_power(whole, {hn::MulAdd(x.v, hn::Set(Tag(), kBeyondFloat), rest)},
                      hn::Not(hn::Lt(x.v, hn::Set(Tag(), -87.f))));  // NaN stays
}
HWY_INLINE Lanes root(Lanes x) {
  return {hn::Sqrt(x.v)};
}
HWY_INLINE Lanes normal_density(Lanes x) {
  return exponential(x * x * -0.5f) * 0.39894228f;
}
/// Abramowitz & Stegun 7.1.26: within 1e-7.
HWY_INLINE Lanes normal_cdf(Lanes x) {
  const Lanes size = Lanes{hn::Abs(x.v)} * 0.70710678f, t = 1.f / (size * 0.3275911f + 1.f);
  const Lanes polynomial = t * (t * (t * (t * (t * 1.061405429f - 1.453152027f) + 1.421413741f) - 0.284496736f) + 0.254829592f);
  const Lanes tail = polynomial * exponential(-(size * size)) * 0.5f;  // P(X > |x|)
  return {hn::IfThenElse(hn::Lt(x.v, hn::Zero(Tag())), tail.v, (1.f - tail).v)};
}

/// x = fraction * 2^exponent, the fraction between sqrt(1/2) and sqrt(2), the exponent where a float has its own.
struct SplitLanes {
  Lanes x, fraction;
  IntVector exponent;
  Lanes whole() const { return Lanes{hn::ConvertTo(Tag(), exponent)} + (x - x); }  // NaN stays
};
HWY_INLINE SplitLanes split(Lanes x) {
  constexpr int kMantissa = 23, kRootOfHalf = 0x3F3504F3;
  const IntVector bits = hn::BitCast(IntTag(), x.v);
  const IntVector exponent = hn::ShiftRight<kMantissa>(hn::Sub(bits, hn::Set(IntTag(), kRootOfHalf)));
  const Lanes fraction = {hn::BitCast(Tag(), hn::Sub(bits, hn::ShiftLeft<kMantissa>(exponent)))};
  return {x, fraction, exponent};
}
/// Binary logarithm of (1 + f) * 2^whole, within 3e-8 of its size.
HWY_INLINE Lanes binary_logarithm(Lanes f, Lanes whole) {
  const Lanes f2 = f * f, f4 = f2 * f2;
  const Lanes low = (f * -0.7213473468f + 1.442695004f) + (f * -0.3607036831f + 0.480910643f) * f2;
  const Lanes high = (f * -0.238944813f + 0.2879162463f) + (f * -0.2072698138f + 0.2157156175f) * f2 + f4 * 0.1258370713f;
  return whole + f * (low + high * f4);
}
/// 2^x where `wanted` and x >= -126, else 0; x < 128.
HWY_INLINE Lanes power_of_two(Lanes x, hn::Mask<Tag> wanted) {
  const RoundedLanes whole = {x + RoundedLanes::kRounds};
  return scaled_power(whole, x - whole.whole(), hn::AndNot(hn::Lt(x.v, hn::Set(Tag(), -126.f)), wanted));
}
HWY_INLINE Lanes logarithm(Lanes x) {
  const SplitLanes parts = split(x);
  return binary_logarithm(parts.fraction - 1.f, parts.whole()) * 0.69314718f;
}
HWY_INLINE Lanes positive_power(Lanes x, float power) {
  const SplitLanes parts = split(x);
  return power_of_two(binary_logarithm(parts.fraction - 1.f, parts.whole()) * power, hn::Not(hn::Le(x.v, hn::Zero(Tag()))));
}
HWY_INLINE Lanes power_of_one_plus(Lanes x, float power) {
  const Lanes sum = x + 1.f, lost = x - (sum - 1.f);  // in rounding
  const SplitLanes parts = split(sum);
  const Lanes unit = {hn::BitCast(Tag(), hn::Sub(hn::Set(IntTag(), 0x3F800000), hn::ShiftLeft<23>(parts.exponent)))};
  return power_of_two(binary_logarithm(parts.fraction - 1.f + lost * unit, parts.whole()) * power, hn::Not(hn::Le(sum.v, hn::Zero(Tag()))));
}

/// Elements from `length` on, up to a whole vector, may be read and overwritten but never count.
struct SimdRow {
  using scalar = float;
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
    Vector w = lowest, x = lowest, y = lowest, z = lowest;  // in one, each vector would wait for the one before
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
      const auto wanted = hn::And(hn::Ne(keep(at(i)).v, hn::Zero(Tag())), hn::FirstN(Tag(), static_cast<size_t>(length - i)));
      kept += lacuna::HWY_NAMESPACE::store_wanted(Tag(), at(i).v, wanted, scratch + kept);
    }
    return {scratch, kept, nullptr, scratch};
  }

 private:
  static HWY_INLINE int width() { return static_cast<int>(hn::Lanes(Tag())); }
  HWY_INLINE int whole_vectors() const { return length & -width(); }
  static HWY_INLINE Lanes load(const float* from) { return {hn::LoadU(Tag(), from)}; }
  HWY_INLINE Lanes at(int i) const { return load(data + i); }
  HWY_INLINE hn::Mask<Tag> rest() const { return hn::FirstN(Tag(), static_cast<size_t>(length & (width() - 1))); }

  /// Sums what f(i, terms...) gives for the vector at i. In blocks: thousands of equal terms would round the same way each time.
  template <class F, size_t... I, class... Totals>
  HWY_INLINE void sum_terms(F f, std::index_sequence<I...>, Totals&... totals) const {
    Lanes total[] = {((void)I, all(0))...}, term[sizeof...(I)];
    const int whole = whole_vectors(), block = 16 * width();
    for (int begin = 0; begin < whole; begin += block) {
      Lanes part[] = {((void)I, all(0))...};
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

namespace row {  // so that row::relu(x) finds them too; a type's file is included after this one
using HWY_NAMESPACE::exponential, HWY_NAMESPACE::if_below, HWY_NAMESPACE::is_at_least, HWY_NAMESPACE::is_positive, HWY_NAMESPACE::logarithm,
    HWY_NAMESPACE::normal_cdf, HWY_NAMESPACE::normal_density, HWY_NAMESPACE::positive_power, HWY_NAMESPACE::power_of_one_plus,
    HWY_NAMESPACE::relu, HWY_NAMESPACE::root;
}

}  // namespace lacuna::types
