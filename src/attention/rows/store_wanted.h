#pragma once

#include <hwy/highway.h>

// Included only by files that are compiled once per instruction set. Always inline: no code of it has a name that two of them could share.
namespace lacuna {
namespace HWY_NAMESPACE {

/// Writes the wanted lanes of `values` side by side from `to`, and returns how many they are. hwy::CompressStore becomes an instruction
/// that writes to memory, which AMD's Zen 4 takes some hundred cycles for; in a register the same is fast, there and elsewhere.
template <class D>
HWY_INLINE int store_wanted(D d, hwy::HWY_NAMESPACE::Vec<D> values, hwy::HWY_NAMESPACE::Mask<D> wanted, hwy::HWY_NAMESPACE::TFromD<D>* to) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET <= HWY_AVX3
  const size_t count = hn::CountTrue(d, wanted);
  hn::BlendedStore(hn::Compress(values, wanted), hn::FirstN(d, count), d, to);
  return static_cast<int>(count);
#else
  return static_cast<int>(hn::CompressStore(values, wanted, d, to));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace lacuna
