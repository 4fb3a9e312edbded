#pragma once

// Dropout factors in vectors. Included only by files that are compiled once per instruction set.

#include <hwy/highway.h>

#include <cstdint>

#include "attention/dropout_rule.h"

/// Code compiled for different processors has different names, or the linker takes one of it for all. A source that is compiled for more
/// than Highway's target names it itself.
#ifndef LACUNA_SIMD_NAMESPACE
#define LACUNA_SIMD_NAMESPACE HWY_NAMESPACE
#endif

namespace lacuna::core {
namespace LACUNA_SIMD_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// philox() of base/random.h for many counters at once: (low, high, 0, 0) in each lane.
class PhiloxLanes {
 public:
  using Tag = hn::ScalableTag<uint32_t>;
  using Vector = hn::Vec<Tag>;

  HWY_INLINE PhiloxLanes(uint64_t key, Vector low, Vector high) {
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    Vector c0 = low, c1 = high, c2 = hn::Zero(Tag()), c3 = c2;
    for (int round = 0; round < kPhiloxRounds; ++round, k0 += kPhiloxKeyStep0, k1 += kPhiloxKeyStep1) {
      const Product first(c0, kPhiloxFactor0), second(c2, kPhiloxFactor2);
      c0 = hn::Xor(hn::Xor(second.upper, c1), hn::Set(Tag(), k0));
      c2 = hn::Xor(hn::Xor(first.upper, c3), hn::Set(Tag(), k1));
      c1 = second.lower;
      c3 = first.lower;
    }
    word[0] = c0;
    word[1] = c1;
    word[2] = c2;
    word[3] = c3;
  }

  Vector word[4];

 private:
  /// The halves of 64 bits.
  struct Product {
    HWY_INLINE Product(Vector x, uint32_t factor) {
      const hn::RepartitionToWide<Tag> pairs;
      const Vector factors = hn::Set(Tag(), factor), odd_x = hn::BitCast(Tag(), hn::ShiftRight<32>(hn::BitCast(pairs, x)));
      const auto even = hn::MulEven(x, factors), odd = hn::MulEven(odd_x, factors);
      upper = hn::OddEven(hn::BitCast(Tag(), odd), hn::BitCast(Tag(), hn::ShiftRight<32>(even)));
      lower = hn::OddEven(hn::BitCast(Tag(), hn::ShiftLeft<32>(odd)), hn::BitCast(Tag(), even));
    }
    Vector upper, lower;
  };
};

/// What PlainMachine::draw_factors says, as many queries at a time as a vector has lanes.
HWY_INLINE void draw_dropout_factors(const DropoutRule& rule, float scale, int rows, int width, int32_t query, int32_t query_step,
                                     int32_t key, float* factors, int64_t row) {
  const hn::ScalableTag<float> floats;
  const hn::ScalableTag<int32_t> integers;
  const PhiloxLanes::Tag counters;
  const int lanes = static_cast<int>(hn::Lanes(floats));
  const auto factor_of = [&](auto word) HWY_ATTR {
    const auto is_dropped = hn::Lt(hn::BitCast(integers, hn::ShiftRight<8>(word)), hn::Set(integers, static_cast<int32_t>(rule.threshold)));
    return hn::IfThenZeroElse(hn::RebindMask(floats, is_dropped), hn::Set(floats, scale));
  };
  auto queries = hn::BitCast(counters, hn::Add(hn::Set(integers, query), hn::Mul(hn::Iota(integers, 0), hn::Set(integers, query_step))));
  const auto next = hn::Set(counters, static_cast<uint32_t>(lanes * query_step));
  alignas(64) float drawn[4 * hn::MaxLanes(floats)];  // for four keys of each query
  for (int r = 0; r < rows; r += lanes, queries = hn::Add(queries, next)) {
    const int count = rows - r < lanes ? rows - r : lanes;
    for (int j = 0; j < width; j += 4) {
      const PhiloxLanes bits(rule.key, hn::Set(counters, static_cast<uint32_t>(key + j) / 4), queries);
      hn::StoreInterleaved4(factor_of(bits.word[0]), factor_of(bits.word[1]), factor_of(bits.word[2]), factor_of(bits.word[3]), floats,
                            drawn);
      const hn::Full128<float> four;
      for (int i = 0; i < count; ++i) hn::StoreU(hn::Load(four, drawn + 4 * i), four, factors + (r + i) * row + j);
    }
  }
}

}  // namespace LACUNA_SIMD_NAMESPACE
}  // namespace lacuna::core
