// Products in tiles (AMX): 16 rows of 16 words each, multiplied in one instruction. Compiled for processors that have
// them.

#include "kernels/amx_tiles.h"
#include "kernels/packed_loops.h"

namespace lacuna {
namespace LACUNA_TARGET {
namespace {

constexpr int kTile = 16, kRows = 2 * kTile;

// Tiles 0 to 3 hold the sums of two by two tiles of the result, 4 and 5 rows of x, 6 and 7 columns of the panel. Every
// sum is one chain in the order of `words`: a row's bits do not depend on how many rows there are.

struct OfBf16 {
  using Sum = float;
  LACUNA_INLINE static Floats load_sums(const float* from) { return load(from); }
  LACUNA_INLINE static void multiply_first() {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  }
  LACUNA_INLINE static void multiply_second() {
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
};

struct OfBytes {
  using Sum = int32_t;
  LACUNA_INLINE static Integers load_sums(const int32_t* from) { return (Integers)load(from); }
  LACUNA_INLINE static void multiply_first() {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
  }
  LACUNA_INLINE static void multiply_second() {
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
};

/// Computes the sums [kRows, kPanel] of 32 or 16 rows. With `next`, prefetches the panel that comes next: with few
/// rows, memory is the bottleneck.
template <class Kind, bool kBoth>
LACUNA_INLINE void multiply_tiles(const PackedProduct& a, const uint8_t* packed, int64_t row, const uint8_t* next,
                                  typename Kind::Sum* sums) {
  const int64_t stride = a.words * 4;
  const uint8_t* x = static_cast<const uint8_t*>(a.x) + row * stride;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t w = 0; w < a.words; w += kTile) {
    if (next != nullptr)
      for (int64_t line = 0; line < kTile * kPanel * 4; line += 64) _mm_prefetch(next + w * kPanel * 4 + line, _MM_HINT_T1);
    _tile_loadd(6, packed + w * kPanel * 4, kPanel * 4);
    _tile_loadd(7, packed + (w * kPanel + kTile) * 4, kPanel * 4);
    _tile_loadd(4, x + w * 4, stride);
    Kind::multiply_first();
    if constexpr (kBoth) {
      _tile_loadd(5, x + kTile * stride + w * 4, stride);
      Kind::multiply_second();
    }
  }
  _tile_stored(0, sums, kPanel * 4);
  _tile_stored(1, sums + kTile, kPanel * 4);
  if constexpr (kBoth) {
    _tile_stored(2, sums + kTile * kPanel, kPanel * 4);
    _tile_stored(3, sums + kTile * kPanel + kTile, kPanel * 4);
  }
}

template <class Kind>
void multiply(const PackedProduct& a, int64_t panel, int64_t begin, int64_t end) {
  const uint8_t* packed = static_cast<const uint8_t*>(a.panels) + panel * a.words * kPanel * 4;
  alignas(64) typename Kind::Sum sums[kRows * kPanel];
  PanelResults results(a, panel);
  const TilesInUse tiles;
  for (int64_t row = begin; row < end; row += kRows) {
    const uint8_t* next = row == begin ? packed + a.words * kPanel * 4 : nullptr;
    const auto rows = static_cast<int>(end - row < kRows ? end - row : kRows);
    if (rows > kTile) {
      multiply_tiles<Kind, true>(a, packed, row, next, sums);
    } else {
      multiply_tiles<Kind, false>(a, packed, row, next, sums);
    }
    results.begin(row);
    for (int half = 0; half < 2; ++half)
      results.write(half, rows, [&](int r) { return Kind::load_sums(sums + r * kPanel + half * kWidth); });
    results.end(rows);
  }
}

}  // namespace

extern const PackedKernel kBf16Kernel, kBytesKernel;
constinit const PackedKernel kBf16Kernel = {kTarget, kPanel, kAllRowLevels, multiply<OfBf16>, to_words<kAllRowLevels>, nullptr, nullptr};
constinit const PackedKernel kBytesKernel = {kTarget, kPanel, kAllRowLevels, multiply<OfBytes>, to_words<kAllRowLevels>, nullptr, nullptr};

}  // namespace LACUNA_TARGET
}  // namespace lacuna
