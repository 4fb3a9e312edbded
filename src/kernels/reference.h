#pragma once

#include <vector>

#include "base/activation.h"
#include "kernels/projection_loss.h"
#include "kernels/residual_norm.h"
#include "kernels/rotation.h"

/// The kernels as plain ATen operations. Fused kernels are tested against them, and they run where there is no fused
/// kernel: for other number types, and for embeddings on a GPU.
namespace lacuna::reference {

ResidualNorm residual_norm(const ResidualEnd& end, const Tensor& output);
Tensor activation_dropout(const Tensor& x, Activation activation, const Dropout& dropout);
Tensor swiglu_dropout(const Tensor& x, const Dropout& dropout);
Tensor turned(const Tensor& x, const Rotation& rotation);
Tensor embed(const Tensor& table, const Tensor& ids, double scale, const Tensor& position_table, const Tensor& positions,
             const Dropout& dropout, int64_t zero_id = -1);
/// Works chunk by chunk, too, and computes the gradients along with the loss; defined in projection_loss.cpp.
ProjectionLoss projection_loss(const Tensor& hidden, const Tensor& weight, const Tensor& targets, double smoothing,
                               Precision precision = Precision::kFp32, const Tensor& bias = {});

}  // namespace lacuna::reference
