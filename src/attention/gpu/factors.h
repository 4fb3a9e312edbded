#pragma once

#include "attention/gpu/block.h"
#include "attention/gpu/per_row.h"

namespace lacuna::cuda {

/// Products of kTile x kTile matrices, whose factors and sums lie in the registers of a warp; sums as in lane_layout.h. Matrices in memory
/// are given by a pointer to their first element and the distance from one row to the next. Here for a warp of one lane, which holds all.
template <class T, class Block>
struct Factors {
  static_assert(Block::kLanes == 1, "tensor cores multiply bf16; emulated, one lane multiplies everything");
  using Number = PerRow<Block>;

  struct Left {
    T of[kTile][kTile];  ///< [row][k]
  };
  struct Right {
    T of[kTile][kTile];  ///< [k][column]
  };

  LACUNA_HD static Left left(const Block& /*block*/, const T* from, int stride) {
    Left factor;
    fill(factor.of, [=](int row, int k) { return from[row * stride + k]; });
    return factor;
  }
  LACUNA_HD static Left left_transposed(const Block& /*block*/, const T* from, int stride) {
    Left factor;
    fill(factor.of, [=](int row, int k) { return from[k * stride + row]; });
    return factor;
  }
  /// Rounds the numbers of kTile columns.
  LACUNA_HD static Left left_of(const Block& /*block*/, const Number* columns) {
    Left factor;
    fill(factor.of, [=](int row, int k) { return static_cast<T>(columns[k].of[row]); });
    return factor;
  }
  LACUNA_HD static Right right(const Block& /*block*/, const T* from, int stride) {
    Right factor;
    fill(factor.of, [=](int k, int column) { return from[k * stride + column]; });
    return factor;
  }
  LACUNA_HD static Right right_transposed(const Block& /*block*/, const T* from, int stride) {
    Right factor;
    fill(factor.of, [=](int k, int column) { return from[column * stride + k]; });
    return factor;
  }
  /// Adds left x right to the sums of kTile columns.
  LACUNA_HD static void multiply_add(const Block& /*block*/, const Left& left, const Right& right, Number* sums) {
    for (int row = 0; row < kTile; ++row)
      for (int k = 0; k < kTile; ++k)
        for (int column = 0; column < kTile; ++column)
          sums[column].of[row] += static_cast<float>(left.of[row][k]) * static_cast<float>(right.of[k][column]);
  }
  LACUNA_HD static void store(const Block& /*block*/, const Left& factor, T* to, int stride) {
    for (int row = 0; row < kTile; ++row)
      for (int k = 0; k < kTile; ++k) to[row * stride + k] = factor.of[row][k];
  }

 private:
  template <class F>
  LACUNA_HD static void fill(T (&of)[kTile][kTile], F f) {
    for (int i = 0; i < kTile; ++i)
      for (int j = 0; j < kTile; ++j) of[i][j] = f(i, j);
  }
};

/// On tensor cores. A factor is four parts of 8 x 8, of which a lane holds two numbers each: first that of lower rows and columns; then, in
/// a left factor, that of higher rows, in a right factor that of higher k; then the other two, likewise. Memory begins at 16 bytes.
template <class Block>
requires(Block::kLanes == 32) struct Factors<Bf16, Block> {
  using Number = PerRow<Block>;

  struct Left {
    uint32_t parts[4];
  };
  struct Right {
    uint32_t parts[4];
  };

  LACUNA_HD static Left left(const Block& block, const Bf16* from, int stride) {
    Left factor;
    block.load_parts(from + down_first(block.lane(), stride), factor.parts);
    return factor;
  }
  LACUNA_HD static Left left_transposed(const Block& block, const Bf16* from, int stride) {
    Left factor;
    block.load_parts_transposed(from + across_first(block.lane(), stride), factor.parts);
    return factor;
  }
  /// Rounds the numbers of kTile columns, which the lanes hold as they do a left factor.
  LACUNA_HD static Left left_of(const Block& block, const Number* columns) {
    Left factor;
    LACUNA_UNROLL
    for (int part = 0; part < 4; ++part) {
      const Number* const pair = columns + 2 * (part / 2);
      factor.parts[part] = block.rounded_pair(pair[0].of[part % 2], pair[1].of[part % 2]);
    }
    return factor;
  }
  LACUNA_HD static Right right(const Block& block, const Bf16* from, int stride) {
    Right factor;
    block.load_parts_transposed(from + down_first(block.lane(), stride), factor.parts);
    return factor;
  }
  LACUNA_HD static Right right_transposed(const Block& block, const Bf16* from, int stride) {
    Right factor;
    block.load_parts(from + across_first(block.lane(), stride), factor.parts);
    return factor;
  }
  /// Adds left x right to the sums of kTile columns.
  LACUNA_HD static void multiply_add(const Block& block, const Left& left, const Right& right, Number* sums) {
    LACUNA_UNROLL
    for (int half = 0; half < 2; ++half) {
      Number* const pair = sums + 2 * half;
      block.multiply_add(left.parts, right.parts + 2 * half, pair[0].of[0], pair[1].of[0], pair[0].of[1], pair[1].of[1]);
    }
  }
  LACUNA_HD static void store(const Block& block, const Left& factor, Bf16* to, int stride) {
    using Layout = LaneLayout<Block>;
    LACUNA_UNROLL
    for (int part = 0; part < 4; ++part) {
      const int row = Layout::row(block.lane(), part % 2), column = Layout::column(block.lane(), 2 * (part / 2));
      *reinterpret_cast<uint32_t*>(to + row * stride + column) = factor.parts[part];
    }
  }

 private:
  // Where the row of 8 numbers begins that a lane names for all: lanes 0 to 7 those of the first part, the next eight those of the second.
  // Down first: the second part lies below the first. Across first: to its right.
  LACUNA_HD static int down_first(int lane, int stride) { return lane % 16 * stride + lane / 16 * 8; }
  LACUNA_HD static int across_first(int lane, int stride) { return (lane % 8 + lane / 16 * 8) * stride + lane / 8 % 2 * 8; }
};

}  // namespace lacuna::cuda
