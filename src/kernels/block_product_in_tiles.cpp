// Blocks multiplied in tiles (AMX): 16 rows of 16 words each, multiplied in one instruction. Compiled for processors
// that have them.

#include "kernels/amx_tiles.h"
#include "kernels/block_loops.h"

namespace lacuna::LACUNA_TARGET {
namespace {

/// Widens the first 16 numbers of bf16, or the 16 after them, to float.
inline __m512 widened_low(__m512i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(x)), 16));
}
inline __m512 widened_high(__m512i x) {
  return widened_low(_mm512_shuffle_i64x2(x, x, 0xEE));
}

inline __m512i rounded(__m512 first, __m512 second) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}

/// Packs float as the sum of two bf16 numbers, each packed as bf16 is.
template <>
struct LayOut<Bf16x3Factor> {
  static void rows_in_depth(Lines<float> lines, int64_t steps, uint32_t* tiles, const TilePlaces& places) {
    for (int64_t s = 0; s < steps; ++s, lines = lines.from_number(kNumbers), tiles += places.step)
      split_lines(lines, tiles, tiles + kStepWords);
  }
  static void columns_in_depth(const Lines<float>& lines, uint32_t* tiles, const TilePlaces& places) {
    lay_out<LayOut<Bf16Factor>::columns_in_depth>(lines, tiles, places);
  }
  static void rows_across(const Lines<float>& lines, uint32_t* tiles, const TilePlaces& places) {
    lay_out<LayOut<Bf16Factor>::rows_across>(lines, tiles, places);
  }
  static void columns_across(const Lines<float>& lines, uint32_t* tiles, const TilePlaces& places) {
    lay_out<LayOut<Bf16Factor>::columns_across>(lines, tiles, places);
  }

 private:
  static constexpr int64_t kNumbers = 32;

  /// 32 lines of 32 numbers; either part fills two tiles, a line a row.
  static void split_lines(const Lines<float>& lines, uint32_t* high, uint32_t* low) {
    const Lines<float> after = lines.from_number(kTileRows);
    for (int64_t i = 0; i < kNumbers; ++i) {
      const __m512 first = lines.load_line(i), second = after.load_line(i);
      const __m512i upper = rounded(first, second);
      _mm512_storeu_si512(high + i * kTileRows, upper);
      _mm512_storeu_si512(low + i * kTileRows, rounded(first - widened_low(upper), second - widened_high(upper)));
    }
  }

  template <void lay_out_part(const Lines<uint16_t>&, uint32_t*, const TilePlaces&)>
  static void lay_out(const Lines<float>& lines, uint32_t* tiles, const TilePlaces& places) {
    alignas(64) uint32_t parts[2][kStepWords];
    split_lines(lines, parts[0], parts[1]);
    for (int i = 0; i < 2; ++i)
      lay_out_part({reinterpret_cast<const uint16_t*>(parts[i]), kNumbers, kNumbers, kNumbers}, tiles + i * kStepWords, places);
  }
};

inline void load_tiles_of_rows(const uint32_t* tiles) {
  _tile_loadd(4, tiles, 64);
  _tile_loadd(5, tiles + kTileWords, 64);
}
inline void load_tiles_of_columns(const uint32_t* tiles) {
  _tile_loadd(6, tiles, 64);
  _tile_loadd(7, tiles + kTileWords, 64);
}
inline void multiply_tiles() {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

/// Tiles 0 to 3 hold the sums of 32 rows and 32 columns, 4 and 5 rows, 6 and 7 columns. The block's memory has all 32
/// rows.
template <class Factor>
class Tiles {
 public:
  static constexpr int64_t kBlocksTogether = 1;
  static TilePlaces places_of_rows(int64_t /*steps*/) { return places_of_panel(0); }
  static TilePlaces places_of_panel(int64_t /*steps*/) {
    return {.step = Factor::kParts * kStepWords, .second = kTileWords, .line = kTileRows};
  }

  void multiply(const uint32_t* rows, const uint32_t* columns, int64_t steps, FirstSums start, float* c, int64_t c_row,
                int64_t /*count*/) const {
    if (start.sums != nullptr) {
      const float* const below = start.sums + kTileRows * start.row;
      const int64_t stride = start.row * 4;
      _tile_loadd(0, start.sums, stride);
      _tile_loadd(1, start.sums + kTileRows, stride);
      _tile_loadd(2, below, stride);
      _tile_loadd(3, below + kTileRows, stride);
    } else {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
    }
    for (int64_t s = 0; s < steps; ++s, rows += Factor::kParts * kStepWords, columns += Factor::kParts * kStepWords) {
      if constexpr (Factor::kParts == 1) {
        load_tiles_of_columns(columns);
        load_tiles_of_rows(rows);
        multiply_tiles();
      } else {
        load_tiles_of_rows(rows + kStepWords);  // low high ...
        load_tiles_of_columns(columns);
        multiply_tiles();
        load_tiles_of_rows(rows);  // ... + high high ...
        multiply_tiles();
        load_tiles_of_columns(columns + kStepWords);  // ... + high low
        multiply_tiles();
      }
    }
    const int64_t stride = c_row * 4;
    float* const below = c + kTileRows * c_row;
    _tile_stored(0, c, stride);
    _tile_stored(1, c + kTileRows, stride);
    _tile_stored(2, below, stride);
    _tile_stored(3, below + kTileRows, stride);
  }

 private:
  TilesInUse tiles_;
};

}  // namespace

constinit const BlockKernel<Bf16Factor> kBf16Blocks = kernel_of<Tiles, Bf16Factor>();
constinit const BlockKernel<Bf16x3Factor> kBf16x3Blocks = kernel_of<Tiles, Bf16x3Factor>();

}  // namespace lacuna::LACUNA_TARGET
