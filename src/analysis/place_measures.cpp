#include "analysis/place_measures.h"

#include <ATen/Parallel.h>

#include <algorithm>

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

}  // namespace lacuna
