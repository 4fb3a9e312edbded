#pragma once

// Vectors of floats with the operators and functions of row maps. Included only by files that are compiled once per
// instruction set, by compiler flags: Highway's static target puts everything here in a namespace of its own for each.

#include <hwy/highway.h>

#include <type_traits>

#include "attention/rows/row.h"

namespace lacuna::types {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using Vector = hn::Vec<Tag>;

/// A truth value for each lane.
struct LanesMask {
  hn::Mask<Tag> m;

  friend HWY_INLINE LanesMask operator&&(LanesMask a, LanesMask b) { return {hn::And(a.m, b.m)}; }
  friend HWY_INLINE LanesMask operator&&(LanesMask a, bool b) { return {b ? a.m : hn::FirstN(Tag(), 0)}; }
  friend HWY_INLINE LanesMask operator||(LanesMask a, LanesMask b) { return {hn::Or(a.m, b.m)}; }
};

/// A vector of floats with the operators that row maps are written with. A number stands for a vector of it.
struct Lanes {
  Vector v;

  Lanes() = default;
  HWY_INLINE Lanes(Vector x) : v(x) {}
  template <class T>
  requires std::is_arithmetic_v<T> HWY_INLINE Lanes(T x) : v(hn::Set(Tag(), static_cast<float>(x))) {}

  friend HWY_INLINE Lanes operator+(Lanes a, Lanes b) { return hn::Add(a.v, b.v); }
  friend HWY_INLINE Lanes operator-(Lanes a, Lanes b) { return hn::Sub(a.v, b.v); }
  friend HWY_INLINE Lanes operator*(Lanes a, Lanes b) { return hn::Mul(a.v, b.v); }
  friend HWY_INLINE Lanes operator/(Lanes a, Lanes b) { return hn::Div(a.v, b.v); }
  friend HWY_INLINE Lanes operator-(Lanes a) { return hn::Neg(a.v); }
  friend HWY_INLINE LanesMask operator<(Lanes a, Lanes b) { return {hn::Lt(a.v, b.v)}; }
  friend HWY_INLINE LanesMask operator<=(Lanes a, Lanes b) { return {hn::Le(a.v, b.v)}; }
  friend HWY_INLINE LanesMask operator>(Lanes a, Lanes b) { return {hn::Gt(a.v, b.v)}; }
  friend HWY_INLINE LanesMask operator!=(Lanes a, Lanes b) { return {hn::Ne(a.v, b.v)}; }
};
HWY_INLINE Lanes select(LanesMask condition, Lanes yes, Lanes no) {
  return hn::IfThenElse(condition.m, yes.v, no.v);
}
HWY_INLINE bool any(LanesMask condition) {
  return !hn::AllFalse(Tag(), condition.m);
}
HWY_INLINE LanesMask all_true(Lanes /*x*/) {
  return {hn::Eq(hn::Zero(Tag()), hn::Zero(Tag()))};
}

HWY_INLINE Lanes relu(Lanes x) {
  return {hn::Max(hn::Zero(Tag()), x.v)};  // in this order NaN stays
}
HWY_INLINE Lanes is_positive(Lanes x) {
  return {hn::IfThenElseZero(hn::Gt(x.v, hn::Zero(Tag())), hn::Set(Tag(), 1.f))};
}
HWY_INLINE Lanes is_at_least(Lanes x, Lanes bound) {
  return hn::IfThenElseZero(hn::Ge(x.v, bound.v), hn::Set(Tag(), 1.f));
}
HWY_INLINE Lanes if_below(Lanes x, Lanes bound, Lanes otherwise) {
  return hn::IfThenElse(hn::Lt(x.v, bound.v), x.v, otherwise.v);
}

using IntTag = hn::RebindToSigned<Tag>;
using IntVector = hn::Vec<IntTag>;

HWY_INLINE IntVector bits_in_order(IntVector bits) {
  return hn::Xor(bits, hn::And(hn::BroadcastSignBit(bits), hn::Set(IntTag(), 0x7FFFFFFF)));
}
HWY_INLINE Lanes middle_in_order(Lanes low, Lanes high) {
  const hn::RebindToUnsigned<Tag> distances;
  const auto first = hn::BitCast(distances, bits_in_order(hn::BitCast(IntTag(), low.v)));
  const auto last = hn::BitCast(distances, bits_in_order(hn::BitCast(IntTag(), high.v)));
  const auto middle = hn::Add(first, hn::ShiftRight<1>(hn::Sub(last, first)));
  return {hn::BitCast(Tag(), bits_in_order(hn::BitCast(IntTag(), middle)))};
}

// Powers and exponentials that do not handle infinite, denormal and, in logarithms, negative numbers, as Highway's own
// do: row maps have no use for these, and the functions take half the time.

/// x = whole + rest, with the nearest integer, which stands in the lowest bits of `shifted`.
struct RoundedLanes {
  static constexpr float kRounds = 0x1.8p23f;
  Lanes shifted;
  Lanes whole() const { return shifted - kRounds; }
};
/// Returns 2^(whole + rest), the rest within a half, where `mask` is set, else 0.
HWY_INLINE Lanes scaled_power(RoundedLanes whole, Lanes rest, hn::Mask<Tag> mask) {
  const Lanes r = rest, r2 = r * r;
  const Lanes power = 1.f + r * ((r * 0.2402264792f + 0.6931472028f) + (r * 0.009618436384f + 0.05550332546f) * r2 +
                                 (r * 0.0001535359947f + 0.001339885198f) * (r2 * r2));
  const IntVector exponent = hn::ShiftLeft<23>(hn::BitCast(IntTag(), whole.shifted.v));
  return {hn::IfThenElseZero(mask, hn::BitCast(Tag(), hn::Add(hn::BitCast(IntTag(), power.v), exponent)))};
}
/// Returns e^x, 0 where it would be denormal; x < 88.
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
/// Returns the normal distribution function within 3e-7 (Abramowitz & Stegun 7.1.26).
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
/// Returns the binary logarithm of (1 + f) * 2^whole, within 2.2e-7 of its size (the polynomial alone is within 3e-8).
HWY_INLINE Lanes binary_logarithm(Lanes f, Lanes whole) {
  const Lanes f2 = f * f, f4 = f2 * f2;
  const Lanes low = (f * -0.7213473468f + 1.442695004f) + (f * -0.3607036831f + 0.480910643f) * f2;
  const Lanes high = (f * -0.238944813f + 0.2879162463f) + (f * -0.2072698138f + 0.2157156175f) * f2 + f4 * 0.1258370713f;
  return whole + f * (low + high * f4);
}
/// Returns 2^x where `mask` is set and x >= -126, else 0; x < 128.
HWY_INLINE Lanes power_of_two(Lanes x, hn::Mask<Tag> mask) {
  const RoundedLanes whole = {x + RoundedLanes::kRounds};
  return scaled_power(whole, x - whole.whole(), hn::AndNot(hn::Lt(x.v, hn::Set(Tag(), -126.f)), mask));
}
HWY_INLINE Lanes logarithm(Lanes x) {
  const SplitLanes parts = split(x);
  return binary_logarithm(parts.fraction - 1.f, parts.whole()) * 0.69314718f;
}
HWY_INLINE Lanes positive_power(Lanes x, Lanes power) {
  const SplitLanes parts = split(x);
  return power_of_two(binary_logarithm(parts.fraction - 1.f, parts.whole()) * power, hn::Not(hn::Le(x.v, hn::Zero(Tag()))));
}
HWY_INLINE Lanes power_of_one_plus(Lanes x, Lanes power) {
  const Lanes sum = x + 1.f, lost = x - (sum - 1.f);  // in rounding
  const SplitLanes parts = split(sum);
  const Lanes unit = {hn::BitCast(Tag(), hn::Sub(hn::Set(IntTag(), 0x3F800000), hn::ShiftLeft<23>(parts.exponent)))};
  return power_of_two(binary_logarithm(parts.fraction - 1.f + lost * unit, parts.whole()) * power, hn::Not(hn::Le(sum.v, hn::Zero(Tag()))));
}

}  // namespace HWY_NAMESPACE

namespace row {  // so that row::relu(x) finds them too; a type's file is included after this one
using HWY_NAMESPACE::all_true, HWY_NAMESPACE::any, HWY_NAMESPACE::exponential, HWY_NAMESPACE::if_below, HWY_NAMESPACE::is_at_least,
    HWY_NAMESPACE::is_positive, HWY_NAMESPACE::logarithm, HWY_NAMESPACE::middle_in_order, HWY_NAMESPACE::normal_cdf,
    HWY_NAMESPACE::normal_density, HWY_NAMESPACE::positive_power, HWY_NAMESPACE::power_of_one_plus, HWY_NAMESPACE::relu,
    HWY_NAMESPACE::root, HWY_NAMESPACE::select;
}

}  // namespace lacuna::types
