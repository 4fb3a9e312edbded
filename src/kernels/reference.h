#pragma once

#include <vector>

#include "kernels/projection_loss.h"
#include "kernels/residual_norm.h"

/// The kernels from plain ATen operations: what the fused ones are tested against, and what runs where there are none (other types; of
/// embeddings, on a GPU).
namespace lacuna::reference {

ResidualNorm residual_norm(const ResidualEnd& end, const Tensor& output);
Tensor activation_dropout(const Tensor& x, bool is_gelu, const Dropout& dropout);
Tensor embed(const Tensor& table, const Tensor& ids, double scale, const Tensor& position_table, const std::vector<int32_t>& positions,
             const Dropout& dropout);
/// Chunk by chunk too, with the gradients worked out beside the loss: in projection_loss.cpp.
ProjectionLoss projection_loss(const Tensor& hidden, const Tensor& weight, const Tensor& targets, double smoothing,
                               FactorPrecision precision = FactorPrecision::kFp32);

}  // namespace lacuna::reference
