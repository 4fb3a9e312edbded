#pragma once

#include <cstdint>
#include <string>
#include <utility>

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

/// Scores every pair, then writes kept.src, kept.tgt, dropped.src, dropped.tgt (in the order of the corpus), scores.tsv and report.txt.
/// A bad pair that is passed over is dropped, as two empty lines. Returns the numbers of all pairs and of bad ones.
/// Throws ConfigError if the model has no null rows and these are what pairs are to be ranked by.
std::pair<int64_t, int64_t> filter_corpus(const LoadedModel& loaded, const FilterCorpus& corpus, const FilterFlags& flags);

}  // namespace lacuna
