#pragma once

#include <filesystem>
#include <vector>

#include "analysis/analysis.h"

/// The folder that `lacuna analyze` writes: report.html, analysis.json, tables, and weights if they are asked for.
namespace lacuna {

/// Throws if a file that write_analysis() would write cannot be written: before there is an analysis to lose. `models` is their number.
void require_places_for_files(const std::filesystem::path& folder, const AnalysisSettings& settings, size_t models);

/// Writes these analyses to the folder, and removes what only an earlier one wrote there. Throws MachineError if that fails.
void write_analysis(const std::filesystem::path& folder, const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings);

}  // namespace lacuna
