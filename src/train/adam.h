#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "train/adam_step.h"

namespace lacuna {

/// The gradient of one parameter, contiguous, whose values are elements `begin` to `begin + count` of the buffers.
struct PlacedGradient {
  int64_t begin = 0, count = 0;
  at::Tensor gradient;  ///< undefined = zeros
};
using PlacedGradients = std::vector<PlacedGradient>;

/// Adam's state: flat buffers [n] of one type on one device.
struct AdamBuffers {
  at::Tensor values, first_moment, second_moment;
  at::Tensor average;  ///< undefined = none
};

/// Elements of a parameter that one sum runs over, less at its end: a chunk. Fixed, so that results do not depend on threads.
inline constexpr int64_t kChunk = 16384;

/// Returns the sums of the squared elements of each chunk, in double; on a GPU one for all chunks.
std::vector<double> squares_of_chunks(const PlacedGradients& gradients);
/// Returns the sum of the squared elements, chunk by chunk.
double sum_of_squares(const PlacedGradients& gradients);

/// Updates the parameters that `gradients` names in one pass. On a GPU, gradients are first copied into one buffer.
void adam_update(const AdamBuffers& buffers, const PlacedGradients& gradients, const AdamStep& step);
/// Does what adam_update does in ATen operations, on any device: the reference of the tests.
void adam_update_reference(const AdamBuffers& buffers, const PlacedGradients& gradients, const AdamStep& step);

}  // namespace lacuna
