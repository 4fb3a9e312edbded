#pragma once

#include <string>
#include <vector>

#include "analysis/analysis.h"

/// What was found, as text for programs: README.md beside this file describes both.
namespace lacuna {

/// analysis.json.
std::string analysis_json(const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings);

/// One CSV table, its first line naming the columns.
struct CsvTable {
  std::string file, text;
};
std::vector<CsvTable> analysis_tables(const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings);

}  // namespace lacuna
