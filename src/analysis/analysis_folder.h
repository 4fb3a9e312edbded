#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/analysis.h"

/// What `lacuna analyze` writes: report.html, analysis.json, CSV tables (README.md beside this file describes them), and weights.
namespace lacuna {

/// Returns the content of analysis.json.
nlohmann::ordered_json analysis_json(const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings);

/// The measures of one system, as analysis.json and `lacuna aer` give them; null is what is not defined.
nlohmann::ordered_json alignment_error_json(const AlignmentErrors& errors, size_t system);

/// One CSV table, its first line naming the columns.
struct CsvTable {
  std::string file, text;
};
std::vector<CsvTable> analysis_tables(const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings);

/// Returns an HTML page that needs no other file: charts of all models side by side, and the weights of the sentences kept for it, as far
/// as they fit into 3 MB. It is made of report.html, .css and report_*.js, which are compiled in. `analysis`: the models' analysis_json().
std::string report_html(const std::vector<ModelAnalysis>& models, const nlohmann::ordered_json& analysis);

/// Returns a part of the page by its placeholder, the word between {{ and }}; PAGE is the page itself.
std::string report_part(const std::string& name);

/// Throws if a file that write_analysis() would write cannot be written: before there is an analysis to lose. `models` is their number.
void require_places_for_files(const std::filesystem::path& folder, const AnalysisSettings& settings, size_t models);

/// Writes these analyses to the folder, and removes what only an earlier one wrote there. Throws MachineError if that fails.
void write_analysis(const std::filesystem::path& folder, const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings);

}  // namespace lacuna
