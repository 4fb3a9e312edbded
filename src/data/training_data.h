#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/options.h"
#include "data/batch_maker.h"
#include "data/corpus.h"

namespace lacuna {

/// Returns the vocabularies that a configuration names. If it names none, trains SentencePiece models on the training corpora and writes
/// them to `folder` (spm.model, or spm.src.model and spm.tgt.model), or reuses those of an earlier start with the same settings and texts.
Vocabularies prepare_vocabularies(const DataOptions& options, const std::string& folder, uint64_t seed);

/// Throws ConfigError if the training text is a stream: `who` would read it more than once.
void refuse_stream(const DataOptions& options, const std::string& who);

/// The training data of a configuration: vocabularies, open corpora, and the plan by which batches are made.
struct TrainingData {
  Vocabularies vocabularies;
  BatchPlan plan;
  DataSummary summary;      ///< counts of all corpora together, unweighted
  std::string fingerprint;  ///< hash of all corpora together
};

/// Opens the training data, of a stream without reading any of it. `folder` is for vocabularies that are trained and, unless `data.cache`
/// names another, for the token cache. `given` vocabularies replace those of prepare_vocabularies. Logs counts; warns if more than 1 % of
/// the tokens are unknown. Throws ConfigError without training corpora, and as prepare_vocabularies and TokenizedCorpus::open do.
TrainingData open_training_data(const DataOptions& options, const std::string& folder, int64_t batch_tokens, uint64_t seed,
                                const std::optional<Vocabularies>& given = {});

}  // namespace lacuna
