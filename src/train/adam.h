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
  at::Tensor average;       ///< undefined = none
  at::Tensor rounded = {};  ///< the values in bf16, of a GPU's; undefined = none
};

/// Elements of a parameter that one sum runs over, less at its end: a chunk. Fixed, so that results do not depend on threads.
inline constexpr int64_t kChunk = 16384;

/// Returns the sums of the squared elements of each chunk, in double; on a GPU one for all chunks.
std::vector<double> squares_of_chunks(const PlacedGradients& gradients);
/// Returns the sum of the squared elements, chunk by chunk.
double sum_of_squares(const PlacedGradients& gradients);

/// Returns true if there are kernels for such buffers: on a GPU, of float.
bool has_adam_kernels(const at::Tensor& buffer);
/// Returns the sum of the squared elements as a scalar of double on their device, which is not waited for.
at::Tensor device_sum_of_squares(const PlacedGradients& gradients, const at::Tensor& values);
/// Lets the device decide about an update, where there are kernels.
void decide_update(const DecisionArgs& args, at::Device device);
/// Does adam_update by what the device has decided.
void adam_update(const AdamBuffers& buffers, const PlacedGradients& gradients, const UpdateDecision* decision);

/// Updates the parameters that `gradients` names in one pass. On a GPU, gradients are first copied into one buffer.
void adam_update(const AdamBuffers& buffers, const PlacedGradients& gradients, const AdamStep& step);
/// Does what adam_update does in ATen operations, on any device: the reference of the tests.
void adam_update_reference(const AdamBuffers& buffers, const PlacedGradients& gradients, const AdamStep& step);

}  // namespace lacuna
