#pragma once

#include <ATen/core/Tensor.h>

namespace lacuna::norms {

using at::Tensor;

/// Row by row: gain ⊙ c / sqrt(mean(c²) + epsilon), times sigmoid(gate ⊙ c) if a gate is given. context [T, D], of bf16 too: then so is
/// the result on the CPU, and on a GPU it is of the gain's type. gain and gate [D], gate may be undefined. On the CPU one pass over memory
/// forward and one backward. A row's bits depend on that row alone; gradients of gain and gate do not depend on the number of threads.
Tensor gated_rms_norm(const Tensor& context, const Tensor& gain, const Tensor& gate, double epsilon);

}  // namespace lacuna::norms
