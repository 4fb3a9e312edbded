#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/links.h"
#include "base/statistics.h"

namespace lacuna {

/// The counts behind an alignment error rate (Och & Ney 2000): AER = 1 - (|A∩S| + |A∩P|) / (|A| + |S|), A the links, S ⊆ P the gold ones.
struct LinkCounts {
  int64_t links = 0, sure = 0;           ///< |A|, |S|
  int64_t in_sure = 0, in_possible = 0;  ///< |A∩S|, |A∩P|
  static LinkCounts of(const Links& links, const GoldLinks& gold);
  void add(const LinkCounts& other);
  /// None if there are neither links nor sure ones.
  std::optional<double> error_rate() const;
  std::optional<double> precision() const;  ///< |A∩P| / |A|
  std::optional<double> recall() const;     ///< |A∩S| / |S|
};

/// Error rates of several systems over the same sentences, with bootstrap intervals, in constant memory: each sentence counts as often in
/// each of the resamples as a Poisson draw of mean 1 says, the same for all systems.
class AlignmentErrors {
 public:
  AlignmentErrors(size_t num_systems, int64_t num_samples, uint64_t seed);
  /// counts [systems] of one sentence.
  void add(int64_t sentence, const std::vector<LinkCounts>& counts);
  size_t num_systems() const { return totals_.size(); }
  const LinkCounts& total(size_t system) const { return totals_[system]; }
  int64_t sentences() const { return sentences_; }
  /// The middle 95 % of the resamples' error rates; none if no resample has one.
  std::optional<Interval> interval(size_t system) const;

 private:
  struct Sample {
    int64_t right = 0, all = 0;  // |A∩S| + |A∩P|, |A| + |S|
  };
  size_t num_samples_;
  uint64_t seed_;
  int64_t sentences_ = 0;
  std::vector<LinkCounts> totals_;
  std::vector<Sample> samples_;  // [systems, samples]
};

}  // namespace lacuna
