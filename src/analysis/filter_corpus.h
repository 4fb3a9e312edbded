#pragma once

#include <cstdint>
#include <string>

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
};

/// Scores every pair, then writes kept.src, kept.tgt, dropped.src, dropped.tgt (in the order of the corpus), scores.tsv and report.txt.
/// Throws ConfigError if the model has no null rows and these are what pairs are to be ranked by.
void filter_corpus(const LoadedModel& loaded, const FilterCorpus& corpus, const FilterFlags& flags);

}  // namespace lacuna
