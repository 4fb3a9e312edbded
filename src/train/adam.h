#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace lacuna {

/// The numbers of one update, all powers and scales worked out.
struct AdamStep {
  double lr = 0;
  double gradient_scale = 1;  ///< of the stored gradient: 1 / tokens, and clipping
  double beta1 = 0, beta2 = 0, epsilon = 0;
  double bias1 = 1, bias2 = 1;  ///< 1 - beta^t
  double l2 = 0;                ///< weight_decay of adam
  double shrink = 1;            ///< 1 - lr * weight_decay of adamw
  double average_rate = 0;      ///< of the moving average
};

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

/// One update of the parameters that have a place in `gradients`, in one pass over memory (CPU), or by ATen's operations (other devices).
void adam_update(const AdamBuffers& buffers, const PlacedGradients& gradients, const AdamStep& step);
/// The same by ATen's operations on any device: the reference of the tests.
void adam_update_reference(const AdamBuffers& buffers, const PlacedGradients& gradients, const AdamStep& step);

}  // namespace lacuna
