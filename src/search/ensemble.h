#pragma once

#include <string>
#include <vector>

#include "search/step_model.h"

namespace lacuna {

/// An ensemble of models: probabilities and alignments are means over the models.
class Ensemble : public StepModel {
 public:
  /// Takes at least one model; all must share their token ids (`check_same_vocabularies`).
  explicit Ensemble(std::vector<StepModelPtr> models);
  std::unique_ptr<DecoderCache> start(const std::vector<std::vector<TokenId>>& sources) override;
  Logits step(const std::vector<TokenId>& tokens, DecoderCache& cache) override;
  int64_t vocab_size() const override { return models_.front()->vocab_size(); }
  int64_t max_positions() const override;
  bool is_thread_safe() const override;

 private:
  std::vector<StepModelPtr> models_;
};

/// Returns log(mean(exp)) over contiguous float tensors of the same shape.
Tensor log_mean_exp(const std::vector<Tensor>& members);

/// Throws DataError naming two models of an ensemble, of the paths `names`, whose vocabularies differ.
void check_same_vocabularies(const std::vector<Vocabularies>& vocabularies, const std::vector<std::string>& names);

}  // namespace lacuna
