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

/// Adds to the row of each group's id scale times the sum of the group's rows of dropout(input), in their order.
struct SumGroups {
  using Args = DroppedGatherSums;
  static constexpr int kWarps = 4, kSharedBytes = 0;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& args, int64_t groups) {
    const GatherSums<float>& a = args.sums;
    const int64_t group = block.index() * kWarps + block.warp();
    if (group >= groups) return;
    for (int64_t pair = 0; pair * 2 * kFeaturesOfWarp < a.columns; ++pair) {
      Quad sums[2];
      for (int64_t r = a.starts[group]; r < a.starts[group + 1]; ++r) {
        KeptFeatures<Block> kept(block, args.dropout, a.rows[r]);
        kept.draw(pair);
        for (int i = 0; i < 2; ++i) {
          const int64_t place = place_of(block, pair, i);
          const Quad factors = kept.factors(i);
          const Quad x = place < a.columns ? load_quad(a.input + a.rows[r] * a.columns + place, a.columns - place) : Quad();
          for (int k = 0; k < Quad::kSize; ++k) sums[i].x[k] += factors.x[k] * x.x[k];
        }
      }
      for (int i = 0; i < 2; ++i) {
        const int64_t place = place_of(block, pair, i);
        if (place >= a.columns) continue;
        float* const to = a.result + a.ids[group] * a.columns + place;
        Quad sum = load_quad(to, a.columns - place);
        for (int k = 0; k < Quad::kSize; ++k) sum.x[k] += a.scale * sums[i].x[k];
        store_quad(to, sum, a.columns - place);
      }
    }
  }

 private:
  template <class Block>
  LACUNA_KERNEL_CODE static int64_t place_of(const Block& block, int64_t pair, int i) {
    return (2 * pair + i) * kFeaturesOfWarp + Quad::kSize * block.lane();
  }
};

}  // namespace lacuna::gpu
