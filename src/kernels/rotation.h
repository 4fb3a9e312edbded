#pragma once

#include <cstdint>
#include <vector>

#include "base/ragged.h"

namespace lacuna {

/// Rotary positions (Su et al. 2021, arXiv:2104.09864, eq. 34): pair i of the d features of a head is turned in its plane
/// by the angle position x 10000^(-2i/d), so that a product of a query and a key depends on their distance alone.
struct Rotation {
  Tensor cosines, sines;           ///< [P, d/2] of positions 0 to P - 1 at least: float, or double for rows of double
  std::vector<int32_t> positions;  ///< [T], each below P
  bool is_interleaved = true;      ///< pair i is features 2i and 2i + 1; false = i and i + d/2
};

/// Returns the cosines and sines of the first `count` positions for heads of d features, in double.
Rotation rotation_table(int64_t count, int64_t d);

/// Returns x [T, parts, H, d] of float, double or bf16 in which the heads of the first two parts, queries and keys, are
/// turned by their row's position. Angles are not rounded to bf16.
Tensor turned(const Tensor& x, const Rotation& rotation);

/// Turns rows [rows, parts, H, d] of float on the CPU in place, without gradients: row i as `positions[i]` says, not
/// `rotation.positions`.
void turn(float* x, int64_t parts, int64_t num_heads, const Rotation& rotation, const std::vector<int32_t>& positions);

}  // namespace lacuna
