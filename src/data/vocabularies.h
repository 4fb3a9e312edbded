#pragma once

#include <string>

#include "config/options.h"
#include "text/vocabulary.h"

namespace lacuna {

/// Returns the vocabularies that a configuration names. If it names none, trains SentencePiece models on the training corpora and writes
/// them to `folder` (spm.model, or spm.src.model and spm.tgt.model), or reuses those of an earlier start with the same settings and texts.
Vocabularies prepare_vocabularies(const DataOptions& options, const std::string& folder, uint64_t seed);

}  // namespace lacuna
