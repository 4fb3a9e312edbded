#include "search/step_model.h"

namespace lacuna {

Ragged ragged_tokens(const std::vector<std::vector<TokenId>>& sentences, const Transformer& model) {
  std::vector<int32_t> lengths;
  std::vector<int64_t> tokens;
  for (const auto& sentence : sentences) {
    lengths.push_back(static_cast<int32_t>(sentence.size()));
    tokens.insert(tokens.end(), sentence.begin(), sentence.end());
  }
  const auto device = model.parameters().front().device();
  return {at::tensor(tokens, at::kLong).to(device), std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths))};
}

std::unique_ptr<DecoderCache> TransformerStepModel::start(const std::vector<std::vector<TokenId>>& sources) {
  return model_->start(ragged_tokens(sources, *model_));
}

Logits TransformerStepModel::step(const std::vector<TokenId>& tokens, DecoderCache& cache) {
  return model_->step(tokens, cache);
}

}  // namespace lacuna
