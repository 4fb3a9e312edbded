#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "train/adam_step.h"

namespace lacuna {

/// The gradient of one parameter, whose values stand in the buffers from `begin` on: contiguous, of any shape.
struct PlacedGradient {
  int64_t begin = 0, count = 0;
  at::Tensor gradient;  ///< undefined = zeros
};
using PlacedGradients = std::vector<PlacedGradient>;

/// Flat buffers [n] of one type and device.
struct AdamBuffers {
  at::Tensor values, first_moment, second_moment;
  at::Tensor average;  ///< undefined = none
};

/// Sum of squares, in double precision and a fixed order whatever the number of threads.
double sum_of_squares(const PlacedGradients& gradients);

/// One update of the parameters that have a place in `gradients`, in one pass over memory. (On a GPU the gradients are first put side by
/// side, with zeros between.)
void adam_update(const AdamBuffers& buffers, const PlacedGradients& gradients, const AdamStep& step);
/// The same by ATen's operations on any device: the reference of the tests.
void adam_update_reference(const AdamBuffers& buffers, const PlacedGradients& gradients, const AdamStep& step);

}  // namespace lacuna
