#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace lacuna {

/// The models of an ensemble, each loaded with the same overrides (checkpoint.h). Throws DataError unless they share their vocabularies.
std::vector<LoadedModel> load_models(const std::vector<std::string>& paths, const std::string& device,
                                     const std::vector<std::string>& overrides);

/// Throws UsageError where the words of a command line ask for a translate.precision that `device` does not have. Where models bring it
/// themselves, a warning says what is done in its place.
void require_precision(TranslatePrecision precision, const std::string& device, const std::vector<std::string>& words);

}  // namespace lacuna
