#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "parts/job_folder.h"
#include "run/score_text.h"
#include "run/translate_text.h"
#include "search/translator.h"

/// What all workers on a text in parts must agree on, so that each part is what one process would make of it: models, by the hash of their
/// files, and every option that changes the output.
namespace lacuna {

/// The terms of a translation. `input` is the file's name, which the errors of JSON lines hold; `terms_file` that of translate --terms, if
/// there is one.
nlohmann::ordered_json translation_terms(const std::vector<LoadedModel>& models, const TranslatorSettings& settings,
                                         const TextTranslation& how, const std::string& input, const std::string& terms_file);
/// The terms of scores. `precision` is that of products.
nlohmann::ordered_json scoring_terms(const std::vector<LoadedModel>& models, const ScoreRequest& asked, Precision precision);

/// Returns the inputs with their digests (sampled_digest_of). Throws DataError for what cannot be read more than once.
std::vector<JobInput> job_inputs(const std::vector<std::string>& files);

}  // namespace lacuna
