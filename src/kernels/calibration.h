#pragma once

#include "base/ragged.h"

/// What calibrated attention makes of attention weights (src/model/calibrated/README.md has the paper and the equations). Tensors are float
/// or double, [Tq, H, K] where nothing else is said; on a GPU one kernel computes each function, and one its gradients.
namespace lacuna {

/// Weights a of a base type, and scores of the mask model: the mask is m = sigmoid(mask_scores).
struct MaskedWeights {
  Tensor base, mask_scores;
};

/// Returns s a + (1 - s) a exp(1 - m), with s = sigmoid(gate_scores) [Tq, H]. Gradients: a, gate_scores.
Tensor gated_weights(const MaskedWeights& masked, const Tensor& gate_scores);
/// Returns the same where s is a number. Gradients: a.
Tensor annealed_weights(const MaskedWeights& masked, double share);
/// Returns softmax(a + factor a exp(1 - m)) over the visible keys, for a >= 0. Gradients: a. `even`: 1/n at each of the n keys that a query
/// sees, else 0.
Tensor fixed_weights(const MaskedWeights& masked, const Tensor& even, double factor);

struct PerturbedWeights {
  Tensor weights;    ///< m a + (1 - m) mean(a), the mean over the visible keys
  Tensor penalty;    ///< [Tq, H]: factor * |1 - m| / sqrt(n), over the visible keys
  Tensor mean_mask;  ///< [Tq, H]: of the visible keys; without gradients
};
/// Gradients: a, mask_scores, each for weights and penalty (0 for the penalty where that is 0).
PerturbedWeights perturbed_weights(const MaskedWeights& masked, const Tensor& even, double factor);

}  // namespace lacuna
