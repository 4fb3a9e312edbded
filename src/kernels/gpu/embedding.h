#pragma once

#include "kernels/gpu/block.h"

/// Rows of tables: a warp for each.
namespace lacuna::gpu {

/// Writes dropout(scale * table[id] + position_table[position]). An id that the table does not have makes a row of NaN.
struct Embed {
  using Args = EmbedRows<float>;
  static constexpr int kWarps = 4, kSharedBytes = 0;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& a, int64_t rows) {
    const int64_t row = block.index() * kWarps + block.warp(), id = row < rows ? a.ids[row] : 0;
    if (row >= rows) return;
    const bool is_known = 0 <= id && id < a.table_rows;
    const float scale = id == a.zero_id ? 0.f : a.scale;
    KeptFeatures<Block> kept(block, a.dropout, row);
    for (int64_t j = 0; j * kFeaturesOfWarp < a.columns; ++j) {
      if (j % 2 == 0) kept.draw(j / 2);
      const int64_t place = j * kFeaturesOfWarp + Quad::kSize * block.lane(), left = a.columns - place;
      if (left <= 0) continue;
      Quad quad = is_known ? load_quad(a.table + id * a.columns + place, left) : Quad{{NAN, NAN, NAN, NAN}};
      const Quad position = a.position_table != nullptr ? load_quad(a.position_table + a.positions[row] * a.columns + place, left) : Quad();
      const Quad factors = kept.factors(j);
      for (int k = 0; k < Quad::kSize; ++k) quad.x[k] = factors.x[k] * (scale * quad.x[k] + position.x[k]);
      store_quad(a.result + row * a.columns + place, quad, left);
    }
  }
};

/// Does the work of SumsByKey: the warp at the first of the rows with a key sums them all, in 256 columns. It reads some rows at once: a
/// key that every sentence has would wait for the memory once for each.
struct SumByKey {
  using Args = SumsByKey;
  static constexpr int kWarps = 4, kSharedBytes = 0, kTogether = 8;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& a, int64_t rows) {
    const int64_t first = block.index() * kWarps + block.warp();
    if (first >= rows) return;
    const int64_t key = a.keys[first];
    const bool is_first = first == 0 || a.keys[first - 1] != key;
    if (!is_first || key == a.left_out || key < 0 || key >= a.result_rows) return;
    const int64_t place = 2 * block.column_index() * kFeaturesOfWarp + Quad::kSize * block.lane();
    const int64_t left[2] = {a.columns - place, a.columns - place - kFeaturesOfWarp};
    Quad sums[2];
    for (int64_t i = first; i < rows && a.keys[i] == key; i += kTogether) {
      int64_t of_key[kTogether];  // -1 = the key has no more
      Quad x[kTogether][2];
      LACUNA_UNROLL
      for (int t = 0; t < kTogether; ++t) {
        of_key[t] = i + t < rows && a.keys[i + t] == key ? a.order[i + t] : -1;
        if (of_key[t] < 0) continue;
        for (int j = 0; j < 2; ++j) x[t][j] = load_quad(a.input + of_key[t] * a.columns + place + j * kFeaturesOfWarp, left[j]);
      }
      LACUNA_UNROLL
      for (int t = 0; t < kTogether; ++t) {
        if (of_key[t] < 0) continue;
        KeptFeatures<Block> kept(block, a.dropout, of_key[t]);
        kept.draw(block.column_index());
        for (int j = 0; j < 2; ++j) {
          const Quad factors = kept.factors(j);
          for (int k = 0; k < Quad::kSize; ++k) sums[j].x[k] += factors.x[k] * x[t][j].x[k];
        }
      }
    }
    for (int j = 0; j < 2; ++j) {
      float* const to = a.result + key * a.columns + place + j * kFeaturesOfWarp;
      Quad sum = load_quad(to, left[j]);
      for (int k = 0; k < Quad::kSize; ++k) sum.x[k] += a.scale * sums[j].x[k];
      store_quad(to, sum, left[j]);
    }
  }
};

}  // namespace lacuna::gpu
