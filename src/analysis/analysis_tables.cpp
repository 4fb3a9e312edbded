#include <cstdio>

#include "analysis/analysis_folder.h"

namespace lacuna {
namespace {

/// A CSV field: quoted where it has to be.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string number(const std::optional<double>& value) {
  if (!value) return "";
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", *value);
  return text;
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& one : fields) line.append(line.empty() ? "" : ",").append(field(one));
  return line + "\n";
}

/// One line for each measure of each head ("all" = heads pooled).
class MeasuresTable {
 public:
  explicit MeasuresTable(const AnalysisSettings& settings) : settings_(settings) {}

  void add(const ModelAnalysis& model, const PlaceAnalysis& place) {
    start_ = {model.name, name_of(place.site), std::to_string(place.layer), place.type};
    add_sums(place.sums, "");
    add_sums(place.shuffled, "shuffled_");
    for (size_t t = 0; t < std::size(kTemperatures) && place.sums.queries > 0 && settings_.wants("diversity"); ++t) {
      std::string name = "diversity";
      if (place.is_rectified) name.append("_").append(number(kTemperatures[t]));
      if (place.is_rectified || t == 0) add_line("all", name, place.sums.divergence[t] / static_cast<double>(place.sums.queries));
    }
    for (const auto& [name, values] : place.numbers) {
      const std::vector<double> means = values.mean();
      for (size_t h = 0; h < means.size() && settings_.wants(name); ++h) add_line(std::to_string(h), name, means[h]);
    }
    if (place.mask_effect.rows > 0) add_mask_effect(place.mask_effect);
  }

  const std::string& text() const { return text_; }

 private:
  void add_sums(const PlaceSums& sums, const std::string& prefix) {
    if (sums.pooled().rows == 0) return;
    add_head("all", sums.pooled(), prefix);
    for (size_t h = 0; h < sums.heads.size(); ++h) add_head(std::to_string(h), sums.heads[h], prefix);
  }

  void add_head(const std::string& head, const HeadSums& sums, const std::string& prefix) {
    if (settings_.wants("sparsity")) add_line(head, prefix + "sparsity", sums.sparsity());
    if (settings_.wants("null_rate")) add_line(head, prefix + "null_rate", sums.null_rate());
    if (settings_.wants("entropy")) add_line(head, prefix + "entropy", sums.mean_entropy());
    if (settings_.wants("support")) add_line(head, prefix + "support", sums.support());
  }

  void add_mask_effect(const MaskEffect& sums) {
    const std::string name = kMaskEffect;
    const auto rows = static_cast<double>(sums.rows);
    add_text("all", name + "_rows", std::to_string(sums.rows));
    add_line("all", name + "_divergence", sums.divergence / rows);
    add_line("all", name + "_entropy_change", sums.entropy_change / rows);
    add_line("all", name + "_mask", sums.mask / rows);
    for (size_t i = 0; i < MaskEffect::kBins; ++i) {
      const MaskEffect::Bin& bin = sums.bins[i];
      if (bin.rows == 0) continue;
      const std::string from = "_from_" + number(static_cast<double>(i) * MaskEffect::kBinWidth);
      add_text("all", name + "_rows" + from, std::to_string(bin.rows));
      add_line("all", name + "_divergence" + from, bin.divergence / static_cast<double>(bin.rows));
    }
  }

  void add_line(const std::string& head, const std::string& measure, std::optional<double> value) {
    add_text(head, measure, number(value));
  }

  void add_text(const std::string& head, const std::string& measure, const std::string& value) {
    std::vector<std::string> fields = start_;
    fields.insert(fields.end(), {head, measure, value});
    text_ += csv_line(fields);
  }

  const AnalysisSettings& settings_;
  std::vector<std::string> start_;  // model, site, layer and type of the lines being added
  std::string text_ = "model,site,layer,type,head,measure,value\n";
};

void add_alignment(const ModelAnalysis& model, std::string& text) {
  for (int layer = 0; layer < model.decoder_layers; ++layer) {
    for (int64_t head = 0; head <= model.num_heads; ++head) {
      for (const AlignmentStep step : kAlignmentSteps) {
        const size_t system = model.system_of(layer, head, step);
        const LinkCounts& total = model.alignment->total(system);
        const auto interval = model.alignment->interval(system);
        text += csv_line({model.name, std::to_string(layer), head == model.num_heads ? "average" : std::to_string(head), name_of(step),
                          number(total.error_rate()), interval ? number(interval->low) : "", interval ? number(interval->high) : "",
                          number(total.precision()), number(total.recall()), std::to_string(total.links)});
      }
    }
  }
}

void add_importance(const ModelAnalysis& model, std::string& text) {
  for (size_t layer = 0; layer < model.importance.size() && model.importance_pairs > 0; ++layer) {
    const ImportanceCorrelation& found = model.importance[layer];
    const auto add = [&](const char* of, const RankCorrelation& one) {
      if (one.is_empty()) return;
      text +=
          csv_line({model.name, std::to_string(layer), of, number(one.mean()), std::to_string(one.rows), std::to_string(one.undefined)});
    };
    add("attention", found.attention);
    add("original", found.original);
    add("mask", found.mask);
  }
}

}  // namespace

std::vector<CsvTable> analysis_tables(const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings) {
  MeasuresTable measures(settings);
  std::string alignment = "model,layer,head,step,aer,low,high,precision,recall,links\n";
  std::string importance = "model,layer,of,tau_b,rows,undefined\n";
  bool has_alignment = false, has_importance = false;
  for (const ModelAnalysis& model : models) {
    for (const PlaceAnalysis& place : model.places) measures.add(model, place);
    if (model.alignment) add_alignment(model, alignment);
    add_importance(model, importance);
    has_alignment = has_alignment || model.alignment;
    has_importance = has_importance || model.importance_pairs > 0;
  }
  std::vector<CsvTable> tables = {{"measures.csv", measures.text()}};
  if (has_alignment) tables.push_back({"alignment.csv", alignment});
  if (has_importance) tables.push_back({"importance.csv", importance});
  return tables;
}

}  // namespace lacuna
