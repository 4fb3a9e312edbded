#pragma once

#include "base/precision.h"
#include "base/ragged.h"

namespace lacuna {

/// Rows of logits, or of their gradients, that are in memory at a time: of float, and of bf16, which takes half the
/// memory. A GPU has as many as are kLossLogits logits in all, and no fewer than these.
inline constexpr int64_t kLossRows = 512, kRoundedLossRows = 1024, kLossLogits = int64_t{1} << 27;

/// Sums over the rows: scalars of double, `correct` of int64. Only `loss` has gradients.
struct ProjectionLoss {
  Tensor loss, nll, correct;
};

/// Returns the label-smoothed cross-entropy of the logits hidden [T, D] x weight [V, D]^T + bias [V] against targets
/// [T] int64, summed over the rows in nats. `bias` may be undefined:
///
///   loss_t = -(1 - s) log p(y_t) - s/V sum_v log p(v)        s = smoothing, spread evenly over all V tokens (Szegedy et al. 2016)
///   nll_t  = -log p(y_t)                                     correct_t = 1 if y_t has the highest logit (the lowest id of equals)
///
/// The gradients are computed with the loss, kLossRows rows at a time (kRoundedLossRows with factors of bf16): the
/// logits [T, V] are never in memory as a whole. `precision` is that of the products' factors, if they are float;
/// logits are float.
ProjectionLoss projection_loss(const Tensor& hidden, const Tensor& weight, const Tensor& targets, double smoothing,
                               Precision precision = Precision::kFp32, const Tensor& bias = {});

}  // namespace lacuna
