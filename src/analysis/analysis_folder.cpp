#include "analysis/analysis_folder.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/json_text.h"
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

/// Files that an earlier analysis may have written and this one does not write: they would look like this one's.
std::vector<fs::path> outdated_files(const fs::path& folder, const std::set<std::string>& written) {
  static const std::regex kOptional(R"((alignment|importance)\.csv|attention(\.\d+)?\.(safetensors|json))");
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && std::regex_match(name, kOptional) && !written.contains(name)) found.push_back(entry.path());
  }
  return found;
}

/// The files of an analysis, written to the folder together.
class AnalysisFiles {
 public:
  explicit AnalysisFiles(fs::path folder) : folder_(std::move(folder)) {}

  Output& add(const std::string& name) {
    written_.insert(name);
    outputs_.push_back(std::make_unique<Output>(folder_ / name));
    return *outputs_.back();
  }
  void add(const std::string& name, const std::string& text) { add(name).write(text); }
  /// Adds the weights and pieces of one model.
  void add_weights(const std::pair<std::string, std::string>& files, const ModelAnalysis& model) {
    Output& weights = add(files.first);
    write_safetensors([&](std::string_view bytes) { weights.write(bytes); }, model.saved);
    nlohmann::ordered_json pieces = nlohmann::ordered_json::object();
    for (const auto& [line, sides] : model.saved_pieces) pieces[std::to_string(line)] = {{"src", sides.first}, {"tgt", sides.second}};
    add(files.second, json_text(pieces, 1) + "\n");
  }
  void finish() const {
    const bool has_earlier = fs::exists(folder_ / "analysis.json");
    std::vector<Output*> outputs;
    outputs.reserve(outputs_.size());
    for (const auto& output : outputs_) outputs.push_back(output.get());
    finish_together(outputs, has_earlier ? outdated_files(folder_, written_) : std::vector<fs::path>());
  }

 private:
  fs::path folder_;
  std::vector<std::unique_ptr<Output>> outputs_;
  std::set<std::string> written_;
};

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
  AnalysisFiles files(folder);
  const nlohmann::ordered_json analysis = analysis_json(models, settings);
  files.add("analysis.json", json_text(analysis, 1) + "\n");
  for (const CsvTable& table : analysis_tables(models, settings)) files.add(table.file, table.text);
  files.add("report.html", report_html(models, analysis));
  for (size_t i = 0; i < models.size() && !settings.saved_lines.empty(); ++i) files.add_weights(weight_files(i, models.size()), models[i]);
  files.finish();
}

}  // namespace lacuna
