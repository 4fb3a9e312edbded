#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/batch.h"

namespace lacuna {

/// A validation or test set in memory: its raw lines to translate and to score, and batches for its loss.
struct EvaluationSet {
  std::string name;
  std::vector<std::string> src_lines, tgt_lines;      ///< as CorpusReader gives them, empty ones too
  std::vector<std::shared_ptr<const Batch>> batches;  ///< pairs without an empty side, in the order of the files
  int64_t cropped = 0;                                ///< pairs cut to max_length in the batches
};

/// Reads one. Pairs beyond data.max_length are cropped, whatever data.long says. Other errors as TokenizedCorpus::open.
EvaluationSet load_evaluation_set(const CorpusOptions& corpus, const DataOptions& options, const Vocabularies& vocabularies,
                                  int64_t batch_tokens);

/// The corpus's name, or its source file's name without language and .gz or .zst.
std::string name_of(const CorpusOptions& corpus);

}  // namespace lacuna
