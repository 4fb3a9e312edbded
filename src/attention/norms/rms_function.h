#pragma once

#include <ATen/core/Tensor.h>

namespace lacuna::norms {

using at::Tensor;

/// Returns, row by row, gain ⊙ c / sqrt(mean(c²) + epsilon), times sigmoid(gate ⊙ c) if a gate is given. context [T, D]
/// and the result are of one type: that of the gain, or bf16 with a gain of float. gain and gate [D], gate may be
/// undefined. On the CPU one pass over memory forward and one backward; on a GPU one kernel and two. Double on a GPU
/// and bf16 with a gain of double are left to ATen, which gives a result of the gain's type. A row's bits depend on
/// that row alone; gradients of gain and gate do not depend on the number of threads.
Tensor gated_rms_norm(const Tensor& context, const Tensor& gain, const Tensor& gate, double epsilon);

}  // namespace lacuna::norms
