#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "analysis/calibration.h"
#include "analysis/sentence_pairs.h"
#include "model/transformer.h"

/// Does cross attention point at what matters? Gradient importance as in Lu et al. 2021, "Attention Calibration for Transformer in Neural
/// Machine Translation".
namespace lacuna {

/// ‖∂p(y_t)/∂h_i‖₂ for every target token t and every row i of the encoder's output, both with eos: [Tt, Ts] float on the CPU. A calibrated
/// model's masks are constants, as in its translation pass. One backward pass for each `batch_tokens` of the prefixes of the target. Leaves
/// the model's parameters without requires_grad.
at::Tensor gradient_importance(Transformer& model, const SentencePair& pair, int64_t batch_tokens);

/// Rank correlation with importance of what one decoder layer shows, averaged over its heads.
struct ImportanceCorrelation {
  RankCorrelation attention;       ///< the weights that the context is made of
  RankCorrelation original, mask;  ///< calibrated attention only: its weights before calibration, and its mask
};

/// Adds those of one pair, by layer [decoder layers].
void correlate_importance(Transformer& model, const SentencePair& pair, int64_t batch_tokens, bool with_calibration,
                          std::vector<ImportanceCorrelation>& layers);

}  // namespace lacuna
