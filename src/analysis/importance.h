#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "analysis/sentence_pairs.h"
#include "model/transformer.h"

/// Does cross attention point at what matters? Gradient importance as in Lu et al. 2021, aclanthology.org/2021.acl-long.103.
namespace lacuna {

/// ‖∂p(y_t)/∂h_i‖₂ for every target token t and every row i of the encoder's output, both with eos: [Tt, Ts] float on the CPU. The
/// mask of a layer that has one is a constant. One backward pass for each `batch_tokens` of the prefixes of the target. Leaves
/// the model's parameters without requires_grad.
at::Tensor gradient_importance(Transformer& model, const SentencePair& pair, int64_t batch_tokens);

/// Rank correlations (Kendall's τ-b) summed over target tokens.
struct RankCorrelation {
  double sum = 0;
  int64_t rows = 0;       ///< rows that have a correlation
  int64_t undefined = 0;  ///< rows of which one side is constant
  bool is_empty() const { return rows + undefined == 0; }
  void add(std::optional<double> tau);
  std::optional<double> mean() const;
};

/// Rank correlation with importance of what one decoder layer shows, averaged over its heads.
struct ImportanceCorrelation {
  RankCorrelation attention;       ///< the weights that the context is made of
  RankCorrelation original, mask;  ///< the weights before a mask changed them, and this mask; empty where there is none
};

/// Adds the correlations of one pair to layers [decoder layers].
void correlate_importance(Transformer& model, const SentencePair& pair, int64_t batch_tokens, bool with_mask,
                          std::vector<ImportanceCorrelation>& layers);

}  // namespace lacuna
