#pragma once

#include <string>

#include "config/options.h"
#include "text/vocabulary.h"

namespace lacuna {

/// The vocabularies that a configuration names. Where it names none, SentencePiece models are trained on the training corpora and written
/// to `folder` (spm.model, or spm.src.model and spm.tgt.model); those that are there from an earlier start with the same
/// settings and texts are used again.
Vocabularies prepare_vocabularies(const DataOptions& options, const std::string& folder, uint64_t seed);

}  // namespace lacuna
