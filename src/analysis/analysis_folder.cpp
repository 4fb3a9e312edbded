#include "analysis/analysis_folder.h"

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/output.h"
#include "checkpoint/safetensors.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Returns the names of the files of a model's weights and of their pieces, for model `number` of `models`.
std::pair<std::string, std::string> weight_files(size_t number, size_t models) {
  const std::string name = models == 1 ? "attention" : "attention." + std::to_string(number);
  return {name + ".safetensors", name + ".json"};
}

/// Writes the weights and pieces of one model. Returns the names of the files.
std::set<std::string> write_weights(const fs::path& folder, const std::pair<std::string, std::string>& files, const ModelAnalysis& model) {
  nlohmann::ordered_json pieces = nlohmann::ordered_json::object();
  for (const auto& [line, sides] : model.saved_pieces) pieces[std::to_string(line)] = {{"src", sides.first}, {"tgt", sides.second}};
  write_safetensors(folder / files.first, model.saved);
  write_file_atomically(folder / files.second, json_text(pieces, 1) + "\n");
  return {files.first, files.second};
}

/// Removes optional files of an earlier analysis that this one has not written: they would look like this one's.
void remove_others(const fs::path& folder, const std::set<std::string>& written) {
  static const std::regex optional(R"((alignment|importance)\.csv|attention(\.\d+)?\.(safetensors|json))");
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && std::regex_match(name, optional) && !written.contains(name)) found.push_back(entry.path());
  }
  for (const fs::path& path : found) {
    std::error_code error;
    fs::remove(path, error);
    if (error) throw MachineError(path.string() + ": cannot be removed: " + error.message());
    log_info("{} is removed: it belonged to an earlier analysis", path.string());
  }
}

}  // namespace

void require_places_for_files(const fs::path& folder, const AnalysisSettings& settings, size_t models) {
  std::vector<std::string> files = {"analysis.json", "report.html", "measures.csv"};
  if (!settings.gold.empty()) files.push_back("alignment.csv");
  if (settings.importance_sentences > 0) files.push_back("importance.csv");
  for (size_t i = 0; i < models && !settings.saved_lines.empty(); ++i) {
    const auto [weights, pieces] = weight_files(i, models);
    files.insert(files.end(), {weights, pieces});
  }
  for (const std::string& file : files) {
    if (!is_replaceable(folder / file)) continue;  // a pipe
    const Output unwritten(folder / file, {settings.src, settings.tgt, settings.gold});
  }
}

void write_analysis(const fs::path& folder, const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings) {
  const bool has_earlier = fs::exists(folder / "analysis.json");
  std::set<std::string> written;
  const nlohmann::ordered_json analysis = analysis_json(models, settings);
  write_file_atomically(folder / "analysis.json", json_text(analysis, 1) + "\n");
  for (const CsvTable& table : analysis_tables(models, settings)) {
    write_file_atomically(folder / table.file, table.text);
    written.insert(table.file);
  }
  write_file_atomically(folder / "report.html", report_html(models, analysis));
  for (size_t i = 0; i < models.size() && !settings.saved_lines.empty(); ++i)
    written.merge(write_weights(folder, weight_files(i, models.size()), models[i]));
  if (has_earlier) remove_others(folder, written);
}

}  // namespace lacuna
