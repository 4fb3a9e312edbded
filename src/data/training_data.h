#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/options.h"
#include "data/batch_maker.h"
#include "data/corpus.h"

namespace lacuna {

/// All that a configuration says of training data, opened: vocabularies, corpora in their caches, and how batches are made of them.
struct TrainingData {
  Vocabularies vocabularies;
  BatchPlan plan;
  DataSummary summary;      ///< of all corpora together, whatever their weights
  std::string fingerprint;  ///< of all corpora together
};

/// `folder` holds vocabularies trained here and, where `data.cache` names no other, the token cache. Logs what was read; warns where more
/// than 1 % of the tokens are unknown. Throws ConfigError without training corpora, and what prepare_vocabularies and TokenizedCorpus::open
/// throw. `given` vocabularies stand in for those that prepare_vocabularies gives.
TrainingData open_training_data(const DataOptions& options, const std::string& folder, int64_t batch_tokens, uint64_t seed,
                                const std::optional<Vocabularies>& given = {});

}  // namespace lacuna
