#include "model/embedding.h"

#include <algorithm>
#include <cmath>

#include "kernels/embedding.h"

namespace lacuna {

EmbeddingTable::EmbeddingTable(int64_t vocab_size, int64_t d_model, const ParameterPath& path)
    : weight_(register_parameter("weight", normal(vocab_size, d_model, 1 / std::sqrt(static_cast<double>(d_model)), path / "weight"))) {}

Ragged Embedding::forward(const Ragged& tokens, const ForwardContext& context) {
  std::vector<int32_t> positions;
  positions.reserve(static_cast<size_t>(tokens.shape->num_tokens()));
  for (int64_t b = 0; b < tokens.shape->num_sentences(); ++b)
    for (int32_t i = 0; i < tokens.shape->length(b); ++i) positions.push_back(i);
  const Dropout dropout = DropoutSite{stack_, 0, DropoutPlace::kEmbedding}.dropout(dropout_, tokens.shape, context);
  return tokens.with(look_up(tokens.values, positions, dropout));
}

Tensor Embedding::at_positions(const Tensor& tokens, const std::vector<int32_t>& positions) {
  return look_up(tokens, positions, {});
}

Tensor Embedding::look_up(const Tensor& tokens, const std::vector<int32_t>& positions, const Dropout& dropout) {
  const Tensor& weight = table_->weight();
  const int32_t last = positions.empty() ? 0 : *std::max_element(positions.begin(), positions.end());
  if (at::GradMode::is_enabled()) table_->packed().drop();
  return embed(weight, tokens, std::sqrt(static_cast<double>(weight.size(1))), positions_->table(last + 1, weight), positions, dropout);
}

}  // namespace lacuna
