#include "model/alignment_probe.h"

#include <algorithm>

namespace lacuna {

AlignmentProbe::AlignmentProbe(int layer, int64_t num_heads, RaggedShapePtr queries)
    : layer_(layer),
      num_heads_(num_heads),
      queries_(std::move(queries)),
      weights_(layer < 0 ? 0 : static_cast<size_t>(num_heads * queries_->num_tokens())) {}

void AlignmentProbe::see(int /*layer*/, AttentionSite /*site*/, int head, int64_t sentence, int64_t query, std::span<const float> weights,
                         std::span<const int32_t> key_positions) {
  std::vector<float>& row = weights_[static_cast<size_t>((queries_->begin(sentence) + query) * num_heads_ + head)];
  for (size_t j = 0; j < weights.size(); ++j) {
    const auto position = static_cast<size_t>(key_positions[j]);
    if (row.size() <= position) row.resize(position + 1, 0);
    row[position] = weights[j];
  }
}

std::vector<std::vector<float>> AlignmentProbe::mean_over_heads() const {
  const auto heads = static_cast<size_t>(num_heads_);
  std::vector<std::vector<float>> means(weights_.size() / heads);
  for (size_t i = 0; i < weights_.size(); ++i) {
    std::vector<float>& mean = means[i / heads];
    mean.resize(std::max(mean.size(), weights_[i].size()), 0);
    for (size_t j = 0; j < weights_[i].size(); ++j) mean[j] += weights_[i][j] / static_cast<float>(num_heads_);
  }
  return means;
}

}  // namespace lacuna
