#pragma once

#include <ATen/core/Tensor.h>

#include "base/precision.h"

/// What the options train.precision and translate.precision mean on a device. `auto` is decided here and nowhere else.
namespace lacuna {

/// Returns `wanted` for training, with kAuto decided: bf16 on a GPU and on a CPU that multiplies it faster, else fp32.
Precision training_precision(Precision wanted, at::Device device);

/// Returns what `train.precision` makes of the factors of matrix products in training: fp32 in place of bf16x3 on
/// devices other than CPUs with tiles (AMX).
Precision factor_precision(Precision wanted, at::Device device);

/// Returns what `translate.precision` makes of weights and activations without gradients, with kAuto decided: bf16 on a
/// CPU that multiplies it faster, else fp32. A GPU multiplies in bf16 where that is wanted, else in fp32.
Precision translating_precision(Precision wanted, at::Device device);

}  // namespace lacuna
