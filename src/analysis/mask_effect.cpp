#include "analysis/mask_effect.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/row_measures.h"

namespace lacuna {

void MaskEffect::add_row(std::span<const float> original, std::span<const float> row_mask) {
  std::vector<double> before, after;
  double mask_sum = 0;
  bool is_null = true;
  for (size_t j = 0; j < original.size(); ++j) {
    if (std::isnan(original[j])) continue;
    const double a = std::abs(static_cast<double>(original[j])), m = static_cast<double>(row_mask[j]);
    before.push_back(a);
    after.push_back(a * std::exp(1 - m));
    mask_sum += m;
    is_null = is_null && a == 0;
  }
  if (is_null) return;
  const double entropy = entropy_of(before), moved = js_divergence(before, after);
  rows += 1;
  divergence += moved;
  entropy_change += entropy_of(after) - entropy;
  mask += mask_sum / static_cast<double>(before.size());
  Bin& bin = bins[std::min(static_cast<size_t>(std::max(0.0, entropy) / kBinWidth), kBins - 1)];
  bin.rows += 1;
  bin.divergence += moved;
}

void MaskEffect::add(const MaskEffect& other) {
  rows += other.rows;
  divergence += other.divergence;
  entropy_change += other.entropy_change;
  mask += other.mask;
  for (size_t i = 0; i < kBins; ++i) {
    bins[i].rows += other.bins[i].rows;
    bins[i].divergence += other.bins[i].divergence;
  }
}

MaskEffect mask_effect_of(const CallWeights& call, int64_t sentence) {
  MaskEffect effect;
  for (int64_t head = 0; head < call.num_heads; ++head) {
    const WeightMatrix original = call.original->matrix(sentence, head), mask = call.mask->matrix(sentence, head);
    for (int64_t query = 0; query < original.queries; ++query) effect.add_row(original.row(query), mask.row(query));
  }
  return effect;
}

}  // namespace lacuna
