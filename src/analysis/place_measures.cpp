#include "analysis/place_measures.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/row_measures.h"

namespace lacuna {

void HeadSums::add(const RowMeasures& row) {
  if (row.visible == 0) return;
  rows += 1;
  nulls += row.is_null();
  weights += row.visible;
  zeros += row.zeros;
  entropy += row.entropy;
}

void HeadSums::add(const HeadSums& other) {
  rows += other.rows;
  nulls += other.nulls;
  weights += other.weights;
  zeros += other.zeros;
  entropy += other.entropy;
}

std::optional<double> HeadSums::mean_entropy() const {
  if (rows == nulls) return {};
  return entropy / static_cast<double>(rows - nulls);
}

void PlaceSums::add(const PlaceSums& other) {
  heads.resize(std::max(heads.size(), other.heads.size()));
  for (size_t h = 0; h < other.heads.size(); ++h) heads[h].add(other.heads[h]);
  for (size_t t = 0; t < divergence.size(); ++t) divergence[t] += other.divergence[t];
  queries += other.queries;
}

HeadSums PlaceSums::pooled() const {
  HeadSums all;
  for (const HeadSums& head : heads) all.add(head);
  return all;
}

PlaceSums measure_sentence(const CallWeights& call, int64_t sentence, const PlaceChoice& choice) {
  PlaceSums sums;
  sums.heads.resize(static_cast<size_t>(call.num_heads));
  HeadDivergence divergence;
  std::vector<std::span<const float>> rows(static_cast<size_t>(call.num_heads));
  const int64_t queries = call.weights.matrix(sentence, 0).queries;
  for (int64_t query = 0; query < queries; ++query) {
    for (size_t h = 0; h < rows.size(); ++h) {
      rows[h] = call.weights.matrix(sentence, static_cast<int64_t>(h)).row(query);
      sums.heads[h].add(measure_row(rows[h]));
    }
    if (!choice.divergence) continue;
    sums.queries += 1;
    if (!choice.is_rectified) sums.divergence[0] += divergence(rows, {});
    for (size_t t = 0; choice.is_rectified && t < std::size(kTemperatures); ++t) sums.divergence[t] += divergence(rows, kTemperatures[t]);
  }
  return sums;
}

std::vector<PlaceSums> measure_sentences(const CallWeights& call, const PlaceChoice& choice) {
  std::vector<PlaceSums> sums(static_cast<size_t>(call.num_sentences));
  at::parallel_for(0, call.num_sentences, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) sums[static_cast<size_t>(b)] = measure_sentence(call, b, choice);
  });
  return sums;
}

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
