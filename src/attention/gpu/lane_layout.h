#pragma once

#include "attention/gpu/kernels.h"

namespace lacuna::cuda {

/// Which elements of a matrix of kTile rows each lane of a warp holds: those that tensor cores give it of their sums (the accumulators of
/// m16n8 in the manual of PTX). Four lanes share a row; of every eight columns, a lane holds two side by side, in two rows. An emulated
/// warp of one lane holds everything.
template <class Block>
struct LaneLayout {
  static constexpr int kEight = 8;
  static constexpr int kSharers = Block::kLanes < 4 ? Block::kLanes : 4;  ///< lanes that share a row
  static constexpr int kRows = kTile * kSharers / Block::kLanes;          ///< of a lane
  static constexpr int kRun = kEight / kSharers;                          ///< columns of a lane that lie side by side

  /// Returns the columns that a lane holds of so many.
  LACUNA_HD static constexpr int share(int columns) { return columns / kSharers; }
  /// Returns the row that is a lane's r-th.
  LACUNA_HD static constexpr int row(int lane, int r) { return lane / kSharers + r * (Block::kLanes / kSharers); }
  /// Returns the column that is a lane's i-th.
  LACUNA_HD static constexpr int column(int lane, int i) { return kEight * (i / kRun) + kRun * (lane % kSharers) + i % kRun; }
};

}  // namespace lacuna::cuda
