#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "parts/worker.h"
#include "run/score_text.h"
#include "run/translate_text.h"
#include "search/translator.h"

namespace lacuna {

/// Returns what translates a file part by part. What is given must outlive it.
std::unique_ptr<PartMaker> translating_parts(const std::string& input, Translator& translator, const TextTranslation& how,
                                             TranslationProgress& progress);
/// Returns what scores a pair of files part by part. What is given must outlive it.
std::unique_ptr<PartMaker> scoring_parts(const std::vector<LoadedModel>& models, const ScoreRequest& asked);

}  // namespace lacuna
