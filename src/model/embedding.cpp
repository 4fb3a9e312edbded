#include "model/embedding.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/shape_lists.h"

namespace lacuna {

EmbeddingTable::EmbeddingTable(int64_t vocab_size, int64_t d_model, const ParameterPath& path)
    : weight_(register_parameter("weight", normal(vocab_size, d_model, 1 / std::sqrt(static_cast<double>(d_model)), path / "weight"))) {}

void EmbeddingTable::round_to(Precision precision) {
  packed_.set_precision(precision);
  const at::NoGradGuard no_gradients;
  if (weight_.is_cpu()) weight_.copy_(rounded(weight_, precision));
}

Tensor sinusoidal_positions(int64_t count, const ModelOptions& options) {
  const int64_t d_model = options.d_model;
  const bool interleaved = options.position_layout == PositionLayout::kInterleaved;
  const int64_t steps = options.position_spacing == PositionSpacing::kPaper ? d_model : d_model - 2;  // of half an exponent
  Tensor table = at::empty({count, d_model}, at::kDouble);
  double* row = table.data_ptr<double>();
  for (int64_t position = options.position_start; position < options.position_start + count; ++position, row += d_model)
    for (int64_t i = 0; i < d_model / 2; ++i) {
      const double angle = static_cast<double>(position) * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(steps));
      row[interleaved ? 2 * i : i] = std::sin(angle);
      row[interleaved ? 2 * i + 1 : d_model / 2 + i] = std::cos(angle);
    }
  return table;
}

PositionTable::PositionTable(const ModelOptions& options, const ParameterPath& path) : options_(options) {
  const int64_t d_model = options.d_model;
  if (options.positions == Positions::kSinusoidal && d_model % 2 != 0)
    throw ConfigError("model.d_model is " + std::to_string(d_model) +
                      "; sinusoidal positions need an even number. Make it even, or set model.positions to learned");
  if (options.positions == Positions::kLearned) {
    const double deviation = 1 / std::sqrt(static_cast<double>(d_model));
    weight_ = register_parameter("weight", normal(options.max_positions, d_model, deviation, path / "weight"));
  }
}

Tensor PositionTable::table(int64_t count, const Tensor& like) {
  if (options_.positions == Positions::kNone || options_.positions == Positions::kRope) return {};
  if (options_.positions == Positions::kSinusoidal) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!sinusoids_.defined() || sinusoids_.size(0) < count || sinusoids_.scalar_type() != like.scalar_type() ||
        sinusoids_.device() != like.device())
      sinusoids_ = sinusoidal_positions(std::max<int64_t>(2 * count, 256), options_).to(like.options().requires_grad(false));
    return sinusoids_;
  }
  if (count > weight_.size(0))
    throw DataError("a sentence of " + std::to_string(count) + " tokens (end of sentence included) is longer than model.max_positions, " +
                    std::to_string(weight_.size(0)) + "; shorten it, or train with a larger max_positions or sinusoidal positions");
  return weight_;
}

Ragged Embedding::forward(const Ragged& tokens, const ForwardContext& context) {
  const Dropout dropout = DropoutSite{stack_, 0, DropoutPlace::kEmbedding}.dropout(dropout_, tokens.shape, context);
  const Tensor vectors = positions_->table(tokens.shape->max_length(), table_->weight());
  return tokens.with(embedded(tokens.values, vectors, lists_on(tokens.values.device(), tokens.shape).positions, dropout));
}

Tensor Embedding::at_positions(const Tensor& tokens, const std::vector<int32_t>& positions, const Dropout& dropout) {
  return embedded(tokens, vectors_of(positions), tensor_of(positions, tokens.device()), dropout);
}

Tensor Embedding::embedded(const Tensor& tokens, const Tensor& vectors, const Tensor& positions, const Dropout& dropout) {
  if (at::GradMode::is_enabled()) table_->packed().drop();
  return embed(table_->weight(), tokens, scale(), vectors, positions, dropout, zero_id_);
}

Tensor Embedding::at_positions(const Tensor& tokens, const Tensor& positions, int64_t count) {
  return embed(table_->weight(), tokens, scale(), positions_->table(count, table_->weight()), positions, /*dropout=*/{}, zero_id_);
}

void Embedding::at_positions(const std::vector<int64_t>& tokens, const std::vector<int32_t>& positions, float* to) {
  embed_into(table_->weight(), tokens, scale(), vectors_of(positions), positions, zero_id_, to);
}

Tensor Embedding::vectors_of(const std::vector<int32_t>& positions) {
  const int32_t last = positions.empty() ? 0 : *std::max_element(positions.begin(), positions.end());
  return positions_->table(last + 1, table_->weight());
}

}  // namespace lacuna
