#include "analysis/weight_gatherer.h"

#include <algorithm>
#include <limits>

namespace lacuna {
namespace {

constexpr float kNotVisible = std::numeric_limits<float>::quiet_NaN();

}  // namespace

SiteWeights::SiteWeights(const RaggedShape& queries, const RaggedShape& keys, int64_t num_heads) {
  size_t size = 0;
  for (int64_t b = 0; b < queries.num_sentences(); ++b) {
    blocks_.push_back({size, queries.length(b), keys.length(b)});
    size += static_cast<size_t>(num_heads * blocks_.back().queries * blocks_.back().keys);
  }
  values_.assign(size, kNotVisible);
}

WeightMatrix SiteWeights::matrix(int64_t sentence, int64_t head) const {
  const Block& block = blocks_[static_cast<size_t>(sentence)];
  return {values_.data() + block.begin + head * block.queries * block.keys, block.queries, block.keys};
}

void SiteWeights::set_row(int64_t sentence, int64_t head, int64_t query, std::span<const float> weights,
                          std::span<const int32_t> key_positions) {
  const Block& block = blocks_[static_cast<size_t>(sentence)];
  float* const row = values_.data() + block.begin + (head * block.queries + query) * block.keys;
  for (size_t j = 0; j < weights.size(); ++j) row[key_positions[j]] = weights[j];
}

void SiteWeights::clear() {
  std::fill(values_.begin(), values_.end(), kNotVisible);
}

WeightGatherer::WeightGatherer(const RaggedShape& src, const RaggedShape& tgt, int64_t num_heads, bool with_mask, Observer observer,
                               Filter wanted)
    : src_(src), tgt_(tgt), num_heads_(num_heads), with_mask_(with_mask), observer_(std::move(observer)), wanted_(std::move(wanted)) {}

WeightGatherer::Site& WeightGatherer::at(AttentionSite site) {
  Site& found = sites_[static_cast<size_t>(site)];
  std::call_once(found.has_room, [&] {
    found.weights =
        SiteWeights(site == AttentionSite::kEncoderSelf ? src_ : tgt_, site == AttentionSite::kDecoderSelf ? tgt_ : src_, num_heads_);
    if (with_mask_ && site != AttentionSite::kEncoderSelf) found.original = found.mask = found.weights;  // as empty
  });
  return found;
}

void WeightGatherer::see(int /*layer*/, AttentionSite site, int head, int64_t sentence, int64_t query, std::span<const float> weights,
                         std::span<const int32_t> key_positions) {
  at(site).weights.set_row(sentence, head, query, weights, key_positions);
}

void WeightGatherer::see_original(int /*layer*/, AttentionSite site, int head, int64_t sentence, int64_t query,
                                  std::span<const float> original, std::span<const float> mask, std::span<const int32_t> key_positions) {
  Site& seen = at(site);
  if (seen.original.is_empty()) return;
  seen.original.set_row(sentence, head, query, original, key_positions);
  seen.mask.set_row(sentence, head, query, mask, key_positions);
  seen.has_original = true;
}

void WeightGatherer::see_number(int layer, AttentionSite site, const std::string& name, std::span<const double> values) {
  numbers_.push_back({layer, site, name, {values.begin(), values.end()}});
}

void WeightGatherer::end_call(int layer, AttentionSite site) {
  Site& seen = at(site);
  const bool has_original = seen.has_original.exchange(false);
  observer_({layer, site, src_.num_sentences(), num_heads_, seen.weights, has_original ? &seen.original : nullptr,
             has_original ? &seen.mask : nullptr});
  seen.weights.clear();
  if (!has_original) return;
  seen.original.clear();
  seen.mask.clear();
}

}  // namespace lacuna
