#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "attention/probe.h"

namespace lacuna {

/// Statistics of a model's attention on a validation set. Names start with site and layer: `encoder_self.0.`.
struct AttentionSummary {
  /// `.sparsity`: share of weights that are exactly 0; `.entropy`: mean of -Σ p ln p in nats, p the magnitudes divided by their sum, over
  /// rows that are not all zeros; `.null_rate`: share of rows that are. Sites without rows are left out.
  std::map<std::string, double> rows;
  /// `encoder_self.0.alpha`: what each head has learned; of numbers that each query has, the mean.
  std::map<std::string, std::vector<double>> numbers;
};

/// Collects sparsity, entropy and null rate of attention, by layer and site, over all rows it sees, and learned numbers. Sums are integers,
/// so they do not depend on the order of threads.
class AttentionStatistics : public AttentionProbe {
 public:
  explicit AttentionStatistics(int64_t num_layers);

  /// To be called before each batch: learned numbers are averaged over the tokens they were seen on.
  void begin_batch(int64_t src_tokens, int64_t tgt_tokens);
  void see(int layer, AttentionSite site, int head, int64_t sentence, int64_t query, std::span<const float> weights,
           std::span<const int32_t> key_positions) override;
  void see_number(int layer, AttentionSite site, const std::string& name, std::span<const double> values) override;

  AttentionSummary summary() const;

 private:
  struct Place {
    std::atomic<int64_t> rows = 0, weights = 0, zeros = 0, null_rows = 0;
    std::atomic<int64_t> entropy = 0;  ///< in units of 2^-32 nats
  };
  static constexpr int kSites = 3;

  std::vector<Place> places_;  ///< [layers * 3]
  std::map<std::string, NumberMean> numbers_;
  int64_t src_tokens_ = 0, tgt_tokens_ = 0;  ///< of the batch
};

}  // namespace lacuna
