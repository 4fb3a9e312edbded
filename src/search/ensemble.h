#pragma once

#include <string>
#include <vector>

#include "search/step_model.h"

namespace lacuna {

/// Several models that vote on each token: the probability of a token is the mean of the models' probabilities. Alignments are means too.
class Ensemble : public StepModel {
 public:
  /// At least one model; all read and write the same token ids (`check_same_vocabularies`).
  explicit Ensemble(std::vector<StepModelPtr> models);
  std::unique_ptr<DecoderCache> start(const std::vector<std::vector<TokenId>>& sources) override;
  Logits step(const std::vector<TokenId>& tokens, DecoderCache& cache) override;
  int64_t vocab_size() const override { return models_.front()->vocab_size(); }
  int64_t max_positions() const override;
  bool is_thread_safe() const override;

 private:
  std::vector<StepModelPtr> models_;
};

/// Throws DataError naming both if models of an ensemble do not share their source and target vocabularies; `names` say where each came
/// from.
void check_same_vocabularies(const std::vector<Vocabularies>& vocabularies, const std::vector<std::string>& names);

}  // namespace lacuna
