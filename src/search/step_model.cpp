#include "search/step_model.h"

#include "model/ragged_of.h"

namespace lacuna {

std::unique_ptr<DecoderCache> TransformerStepModel::start(const std::vector<std::vector<TokenId>>& sources) {
  return model_->start(ragged_of(sources, model_->device()));
}

Logits TransformerStepModel::step(const std::vector<TokenId>& tokens, DecoderCache& cache) {
  return model_->step(tokens, cache);
}

}  // namespace lacuna
