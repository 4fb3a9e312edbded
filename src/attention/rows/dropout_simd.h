#pragma once

// Dropout factors in vectors. Included only by files that are compiled once per instruction set.

#include <hwy/highway.h>

#include <cstdint>

#include "attention/rows/dropout.h"
#include "kernels/philox_words.h"

/// The namespace of code that is compiled for several instruction sets: with one name for all, the linker would take
/// one of them for all. A source that is compiled for more than Highway's target defines its own name.
#ifndef LACUNA_SIMD_NAMESPACE
#define LACUNA_SIMD_NAMESPACE HWY_NAMESPACE
#endif

namespace lacuna::core {
namespace LACUNA_SIMD_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Does what PlainMachine::draw_factors says, for as many queries at a time as a vector has lanes.
HWY_INLINE void draw_dropout_factors(const DropoutRule& rule, float scale, int rows, int width, int32_t query, int32_t query_step,
                                     int32_t key, float* factors, int64_t row) {
  const hn::ScalableTag<float> floats;
  const hn::ScalableTag<int32_t> integers;
  const hn::ScalableTag<uint32_t> counters;
  using Counters = hn::Vec<decltype(counters)>;
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
      WordVector bits[4] = {hn::Set(counters, static_cast<uint32_t>(key + j) / 4).raw, queries.raw, all_words(0), all_words(0)};
      make_philox(rule.key, bits);
      hn::StoreInterleaved4(factor_of(Counters{bits[0]}), factor_of(Counters{bits[1]}), factor_of(Counters{bits[2]}),
                            factor_of(Counters{bits[3]}), floats, drawn);
      const hn::Full128<float> four;
      for (int i = 0; i < count; ++i) hn::StoreU(hn::Load(four, drawn + 4 * i), four, factors + (r + i) * row + j);
    }
  }
}

}  // namespace LACUNA_SIMD_NAMESPACE
}  // namespace lacuna::core
