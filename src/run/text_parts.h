#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analysis/filter_corpus.h"
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
/// Returns what scores the pairs of a corpus for a filter, part by part: lines that filter_scores_of() reads. `scorer` must outlive it.
std::unique_ptr<PartMaker> filtering_parts(const FilterScorer& scorer);

}  // namespace lacuna
