#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "attention/probe.h"
#include "base/ragged_shape.h"

namespace lacuna {

/// Weights of one head in one sentence: [queries, keys], NaN where the query does not see the key.
struct WeightMatrix {
  const float* values = nullptr;
  int64_t queries = 0, keys = 0;
  std::span<const float> row(int64_t query) const { return {values + query * keys, static_cast<size_t>(keys)}; }
};

/// Matrices of every sentence and head at one site.
class SiteWeights {
 public:
  SiteWeights() = default;
  SiteWeights(const RaggedShape& queries, const RaggedShape& keys, int64_t num_heads);
  bool is_empty() const { return values_.empty(); }
  WeightMatrix matrix(int64_t sentence, int64_t head) const;
  void set_row(int64_t sentence, int64_t head, int64_t query, std::span<const float> weights, std::span<const int32_t> key_positions);
  void clear();

 private:
  struct Block {
    size_t begin;
    int64_t queries, keys;
  };
  std::vector<Block> blocks_;  // [sentences]
  std::vector<float> values_;
};

/// One attention call of a batch, as an observer sees it.
struct CallWeights {
  int layer;
  AttentionSite site;
  int64_t num_sentences, num_heads;
  const SiteWeights& weights;
  const SiteWeights* original;  ///< the weights before a mask changed them, and this mask; null where there is none
  const SiteWeights* mask;
};

/// Gathers the weights of one attention call at a time and shows them to an observer when the call is over: memory for one call of each
/// site that is looked at, whatever the number of layers.
class WeightGatherer : public AttentionProbe {
 public:
  using Observer = std::function<void(const CallWeights&)>;
  using Filter = std::function<bool(int layer, AttentionSite site)>;

  /// `wanted` says which calls are observed; empty = all. `with_mask` makes room for what layers with a mask show.
  WeightGatherer(const RaggedShape& src, const RaggedShape& tgt, int64_t num_heads, bool with_mask, Observer observer, Filter wanted = {});

  bool wants(int layer, AttentionSite site) const override { return !wanted_ || wanted_(layer, site); }
  void see(int layer, AttentionSite site, int head, int64_t sentence, int64_t query, std::span<const float> weights,
           std::span<const int32_t> key_positions) override;
  void see_original(int layer, AttentionSite site, int head, int64_t sentence, int64_t query, std::span<const float> original,
                    std::span<const float> mask, std::span<const int32_t> key_positions) override;
  void see_number(int layer, AttentionSite site, const std::string& name, std::span<const double> values) override;
  void end_call(int layer, AttentionSite site) override;

  /// A learned number of each head, by layer, site and the name its type has for it.
  struct SeenNumber {
    int layer;
    AttentionSite site;
    std::string name;
    std::vector<double> values;
  };
  const std::vector<SeenNumber>& numbers() const { return numbers_; }

 private:
  struct Site {
    SiteWeights weights, original, mask;
    std::atomic<bool> has_original = false;
    std::once_flag has_room;
  };
  /// The call in progress, with memory for its weights, which is allocated when the first of them comes.
  Site& at(AttentionSite site);

  RaggedShape src_, tgt_;
  int64_t num_heads_;
  bool with_mask_;
  Observer observer_;
  Filter wanted_;
  Site sites_[std::size(kAttentionSites)];
  std::vector<SeenNumber> numbers_;
};

}  // namespace lacuna
