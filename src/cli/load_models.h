#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace lacuna {

/// The models of an ensemble, each loaded with the same overrides (checkpoint.h). Throws DataError unless they share their vocabularies.
std::vector<LoadedModel> load_models(const std::vector<std::string>& paths, const std::string& device,
                                     const std::vector<std::string>& overrides);

}  // namespace lacuna
