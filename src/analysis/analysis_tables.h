#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/analysis.h"

/// The findings of an analysis for programs, as JSON and CSV: README.md beside this file describes both.
namespace lacuna {

/// Returns the content of analysis.json.
nlohmann::ordered_json analysis_json(const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings);

/// Error rate, interval, precision, recall and links of one system, as analysis.json and `lacuna aer` give them; null is what is not
/// defined.
nlohmann::ordered_json alignment_error_json(const AlignmentErrors& errors, size_t system);

/// One CSV table, its first line naming the columns.
struct CsvTable {
  std::string file, text;
};
std::vector<CsvTable> analysis_tables(const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings);

}  // namespace lacuna
