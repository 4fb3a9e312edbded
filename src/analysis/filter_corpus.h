#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/pair_scores.h"
#include "checkpoint/checkpoint.h"

namespace lacuna {

/// How `lacuna score --filter` ranks and keeps pairs.
struct FilterFlags {
  std::string folder;
  double keep = .8;
  std::string by;  ///< null_rate, null_contrast, log_prob, both; empty = null_rate if the model has null rows, else log_prob
};

struct FilterCorpus {
  std::string src, tgt;
  int64_t batch_tokens;
  bool is_quiet;
  OnBadLine bad_lines = OnBadLine::kStop;
};

/// Scores pairs for `lacuna score --filter`.
class FilterScorer {
 public:
  /// Makes the folder, and learns the null contrast from a sample of the corpus if pairs are to be ranked by it. What is given must outlive
  /// the scorer. Throws ConfigError if the model has no null rows and these are what pairs are to be ranked by, UsageError if a file of the
  /// folder is read, DataError if the sample teaches nothing.
  FilterScorer(const LoadedModel& loaded, const FilterCorpus& corpus, const FilterFlags& flags);

  /// The measure that pairs are ranked by, whether it was asked for or follows from the model: a value of FilterFlags::by.
  const std::string& by() const { return by_; }
  bool has_contrasts() const { return contrast_.has_value(); }
  /// Opens the corpus at its beginning.
  void open(std::optional<PairReader>& reader) const;
  std::vector<PairScore> scores_of(const std::vector<SentencePair>& pairs) const;

 private:
  const LoadedModel& loaded_;
  const FilterCorpus& corpus_;
  std::string by_;
  std::optional<NullContrast> contrast_;
};

/// Writes kept.src, kept.tgt, dropped.src, dropped.tgt (in the order of the corpus), scores.tsv and report.txt. A bad pair that is passed
/// over is dropped, as two empty lines. `scores` are those of all pairs, ranked by the measure `by`. Throws DataError if none is scored,
/// which says how many are bad.
void write_filtered(const FilterCorpus& corpus, const FilterFlags& flags, const std::string& by, const std::vector<PairScore>& scores,
                    int64_t bad_pairs);

/// Scores every pair, and writes as write_filtered() does. Returns the numbers of all pairs and of bad ones that were passed over.
std::pair<int64_t, int64_t> filter_corpus(const LoadedModel& loaded, const FilterCorpus& corpus, const FilterFlags& flags);

/// Returns how many of the pairs are bad ones that were passed over.
int64_t count_passed_over(const std::vector<SentencePair>& pairs);

}  // namespace lacuna
