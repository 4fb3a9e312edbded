#include <ATen/Functions.h>

#include <set>

#include "analysis/analysis.h"
#include "attention/registry.h"
#include "attention/rows/row_numbers.h"
#include "base/error.h"
#include "base/spelling.h"

namespace lacuna {
namespace {

/// The parts of a model with these options that not every model has.
struct Peculiarities {
  std::set<std::string> numbers;  ///< that heads learn, by the names that their types have for them
  bool shows_mask = false;
};

Peculiarities peculiarities_of(const ModelOptions& options) {
  const AttentionPlan plan = resolve_attention(options);
  const at::NoGradGuard no_gradients;
  Peculiarities found;
  for (const auto* layers : {&plan.encoder_self, &plan.decoder_self, &plan.cross}) {
    for (const AttentionChoice& choice : *layers) {
      const AttentionType& type = *choice.type;
      if (const auto numbers = make_row_numbers(type, options.num_heads, options.d_model))
        for (const RowNumber& number : numbers->forward(at::zeros({1, options.d_model}))) found.numbers.insert(number.name);
      found.shows_mask = found.shows_mask || !type.is_row_map();
      if (type.has_gate()) found.numbers.insert("gate");
    }
  }
  return found;
}

}  // namespace

std::vector<MissingMeasure> missing_measures(const ModelOptions& options, const AnalysisSettings& settings) {
  const Peculiarities has = peculiarities_of(options);
  std::vector<MissingMeasure> missing;
  const auto require = [&](bool holds, const char* measure, const char* why) {
    if (!holds && settings.wants(measure)) missing.push_back({measure, why});
  };
  for (const char* number : {"alpha", "span", "gate"}) require(has.numbers.contains(number), number, "no head learns one");
  require(has.shows_mask, kMaskEffect, kNoMaskEffect);
  require(!settings.gold.empty(), "alignment", "no gold links were given");
  require(settings.importance_sentences > 0, "importance", "no sentence was sampled");
  return missing;
}

void require_measures(const std::vector<std::string>& names, const std::vector<Options>& models, const AnalysisSettings& settings) {
  std::vector<MissingMeasure> missing;
  for (const Options& options : models) {
    missing = missing_measures(options.model, settings);
    if (settings.only.empty() || missing.size() < settings.only.size()) return;
  }
  std::vector<std::string> notes;  // those of the last model are those of all
  notes.reserve(missing.size());
  for (const MissingMeasure& one : missing) notes.push_back(one.note());
  throw ConfigError(join(names) + ": nothing to analyse: " + join(notes, "; ") + ". Leave --only out, or name other measures");
}

}  // namespace lacuna
