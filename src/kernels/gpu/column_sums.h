#pragma once

#include "kernels/gpu/block.h"

/// Passes over a matrix that also sum its columns: a block for kRowsPerSum rows and 128 columns.
namespace lacuna::gpu {

inline constexpr int kSummers = 8;

/// The base of kernels that leave kSums column sums of each kRowsPerSum rows.
template <int kSums>
struct ColumnSums {
  static constexpr int kWarps = kSummers, kSharedBytes = kSums * kSummers * kLanes * static_cast<int>(sizeof(Quad));

  /// Calls value(row, column, parts) for the quad at `column` of each row; it adds to parts[i] what belongs to sum i. Each of the block's
  /// warps takes some of the rows; then their sums are added up in order. Sums that are null are not wanted.
  template <class Block, class F>
  LACUNA_KERNEL_CODE static void run(const Block& block, int64_t rows, int64_t columns, float* const (&sums)[kSums], const F& value) {
    Quad parts[kSums];
    const int64_t column = block.column_index() * kFeaturesOfWarp + Quad::kSize * block.lane(), first = block.index() * kRowsPerSum;
    const int64_t end = first + kRowsPerSum < rows ? first + kRowsPerSum : rows;
    if (column < columns)
      for (int64_t row = first + block.warp(); row < end; row += kSummers) value(row, column, parts);
    auto* const shared = reinterpret_cast<Quad*>(block.shared());  // [kSums][kSummers][kLanes]
    const auto place = [&](int sum, int summer) { return (sum * kSummers + summer) * kLanes + block.lane(); };
    for (int i = 0; i < kSums; ++i) shared[place(i, block.warp())] = parts[i];
    block.sync();
    for (int i = 0; i < kSums; ++i) {
      if (i != block.warp() || column >= columns || sums[i] == nullptr) continue;
      Quad sum;
      for (int s = 0; s < kSummers; ++s)
        for (int k = 0; k < Quad::kSize; ++k) sum.x[k] += shared[place(i, s)].x[k];
      store_quad(sums[i] + block.index() * columns + column, sum, columns - column);
    }
  }
};

/// Rounds rows to bf16.
struct RoundAndSum : ColumnSums<1> {
  using Args = RoundedRows<float>;

  template <class Block>
  LACUNA_KERNEL_CODE static void run(const Block& block, const Args& a, int64_t rows) {
    ColumnSums::run(block, rows, a.columns, {a.sums}, [&](int64_t row, int64_t column, Quad* parts) {
      const int64_t i = row * a.columns + column;
      const Quad x = load_quad(a.input + i, a.columns - column);
      for (int k = 0; k < Quad::kSize; ++k) parts->x[k] += x.x[k];
      store_quad(a.rounded + i, x, a.columns - column);
    });
  }
};

}  // namespace lacuna::gpu
