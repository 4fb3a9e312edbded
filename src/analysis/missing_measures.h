#pragma once

#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "config/options.h"

/// What would not be measured, as far as options say so: known before a model is loaded.
namespace lacuna {

struct MissingMeasure {
  std::string measure, why;
  /// "alpha: no head learns one".
  std::string note() const { return measure + ": " + why; }
};

/// Of the measures that are wanted, those that an analysis of a model with these options would leave out.
std::vector<MissingMeasure> missing_measures(const ModelOptions& options, const AnalysisSettings& settings);

/// Throws ConfigError where `settings.only` names nothing that any of these models has.
void require_measures(const std::vector<std::string>& names, const std::vector<Options>& models, const AnalysisSettings& settings);

}  // namespace lacuna
