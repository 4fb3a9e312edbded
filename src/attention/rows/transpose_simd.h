#pragma once

#include <hwy/highway.h>

#include <cstdint>

// For files compiled once per instruction set. Always inline: no code of it has a name that two of them could share.
namespace lacuna {
namespace HWY_NAMESPACE {

/// Returns a vector of blocks of four numbers, which begin at from(first), from(first + step), ...
template <class D, class From>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_blocks(D d, From from, int first, int step) {
  namespace hn = hwy::HWY_NAMESPACE;
  if constexpr (hn::MaxLanes(D()) == 4) {
    return hn::LoadU(d, from(first));
  } else {
    const hn::Half<D> half;
    const int blocks = static_cast<int>(hn::Lanes(half)) / 4;
    return hn::Combine(d, load_blocks(half, from, first + blocks * step, step), load_blocks(half, from, first, step));
  }
}

/// Transposes four columns of as many rows as D has lanes: row i's are at from(i). Calls to(c, column) for each.
template <class D, class From, class To>
HWY_INLINE void transpose_four(D d, From from, To to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RepartitionToWide<D> pairs;
  const auto w = load_blocks(d, from, 0, 4), x = load_blocks(d, from, 1, 4), y = load_blocks(d, from, 2, 4), z = load_blocks(d, from, 3, 4);
  const auto wx_low = hn::BitCast(pairs, hn::InterleaveLower(d, w, x)), wx_high = hn::BitCast(pairs, hn::InterleaveUpper(d, w, x)),
             yz_low = hn::BitCast(pairs, hn::InterleaveLower(d, y, z)), yz_high = hn::BitCast(pairs, hn::InterleaveUpper(d, y, z));
  to(0, hn::BitCast(d, hn::InterleaveLower(pairs, wx_low, yz_low)));
  to(1, hn::BitCast(d, hn::InterleaveUpper(pairs, wx_low, yz_low)));
  to(2, hn::BitCast(d, hn::InterleaveLower(pairs, wx_high, yz_high)));
  to(3, hn::BitCast(d, hn::InterleaveUpper(pairs, wx_high, yz_high)));
}

}  // namespace HWY_NAMESPACE
}  // namespace lacuna
