#include "analysis/attention_statistics.h"

#include <cmath>

#include "analysis/row_measures.h"

namespace lacuna {
namespace {

constexpr double kEntropyUnit = 0x1p-32;

std::string place_name(int layer, AttentionSite site) {
  return std::string(name_of(site)) + "." + std::to_string(layer) + ".";
}

}  // namespace

AttentionStatistics::AttentionStatistics(int64_t num_layers) : places_(static_cast<size_t>(num_layers * kSites)) {}

void AttentionStatistics::begin_batch(int64_t src_tokens, int64_t tgt_tokens) {
  src_tokens_ = src_tokens;
  tgt_tokens_ = tgt_tokens;
}

void AttentionStatistics::see(int layer, AttentionSite site, int, int64_t, int64_t, std::span<const float> weights,
                              std::span<const int32_t>) {
  const size_t index = static_cast<size_t>(layer) * kSites + static_cast<size_t>(site);
  if (index >= places_.size() || weights.empty()) return;
  Place& place = places_[index];
  int64_t zeros = 0;
  for (const float weight : weights) zeros += weight == 0;
  place.rows += 1;
  place.weights += static_cast<int64_t>(weights.size());
  place.zeros += zeros;
  place.null_rows += zeros == std::ssize(weights);
  place.entropy += std::llround(entropy_of(weights) / kEntropyUnit);
}

void AttentionStatistics::see_number(int layer, AttentionSite site, const std::string& name, std::span<const double> values) {
  const int64_t queries = site == AttentionSite::kEncoderSelf ? src_tokens_ : tgt_tokens_;
  numbers_[place_name(layer, site) + name].add({values.begin(), values.end()}, static_cast<double>(queries));
}

AttentionSummary AttentionStatistics::summary() const {
  AttentionSummary summary;
  for (const auto& [name, numbers] : numbers_) summary.numbers[name] = numbers.mean();
  for (size_t index = 0; index < places_.size(); ++index) {
    const Place& place = places_[index];
    if (place.rows == 0) continue;
    const std::string name = place_name(static_cast<int>(index / kSites), kAttentionSites[index % kSites]);
    summary.rows[name + "sparsity"] = static_cast<double>(place.zeros) / static_cast<double>(place.weights);
    summary.rows[name + "null_rate"] = static_cast<double>(place.null_rows) / static_cast<double>(place.rows);
    if (place.rows > place.null_rows)
      summary.rows[name + "entropy"] =
          static_cast<double>(place.entropy) * kEntropyUnit / static_cast<double>(place.rows - place.null_rows);
  }
  return summary;
}

}  // namespace lacuna
