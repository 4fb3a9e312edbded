#pragma once

#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "config/options.h"

/// Measures that a model does not have, known from its options before it is loaded.
namespace lacuna {

struct MissingMeasure {
  std::string measure, why;
  /// Returns a sentence such as "alpha: no head learns one".
  std::string note() const { return measure + ": " + why; }
};

/// Returns the wanted measures that an analysis of a model with these options would leave out.
std::vector<MissingMeasure> missing_measures(const ModelOptions& options, const AnalysisSettings& settings);

/// Throws ConfigError where `settings.only` names nothing that any of these models has.
void require_measures(const std::vector<std::string>& names, const std::vector<Options>& models, const AnalysisSettings& settings);

}  // namespace lacuna
