#include "run/load_models.h"

#include <algorithm>

#include "base/error.h"
#include "base/library_pages.h"
#include "base/log.h"
#include "model/transformer.h"
#include "search/ensemble.h"

namespace lacuna {

std::vector<LoadedModel> load_models(const std::vector<std::string>& paths, const std::string& device,
                                     const std::vector<std::string>& overrides, std::optional<Precision> precision) {
  give_back_library_pages();
  std::vector<LoadedModel> models;
  std::vector<Vocabularies> vocabularies;
  for (const std::string& path : paths) {
    models.push_back(load_model_to_translate(path, device, overrides, precision));
    vocabularies.push_back(models.back().vocabularies);
    precision = precision.value_or(models.front().options.translate.precision);
  }
  check_same_vocabularies(vocabularies, paths);
  return models;
}

LoadedEnsemble as_ensemble(const std::vector<LoadedModel>& loaded) {
  LoadedEnsemble result;
  result.vocabularies = loaded.front().vocabularies;
  result.options = loaded.front().options;
  std::vector<StepModelPtr> models;
  for (const LoadedModel& one : loaded) {
    result.members.push_back(one.model);
    models.push_back(std::make_shared<TransformerStepModel>(one.model));
    const auto layers = static_cast<int>(one.options.model.decoder_layers), heads = static_cast<int>(one.options.model.num_heads);
    result.decoder_layers = models.size() == 1 ? layers : std::min(layers, result.decoder_layers);
    result.num_heads = models.size() == 1 ? heads : std::min(heads, result.num_heads);
  }
  result.alignment = result.options.alignment_source();
  const auto differs = [&](const LoadedModel& one) { return one.options.alignment_source() != result.alignment; };
  if (std::ranges::any_of(loaded, differs)) result.alignment = result.average();
  result.model = models.size() == 1 ? models.front() : std::make_shared<Ensemble>(models);
  return result;
}

AlignmentSource LoadedEnsemble::alignment_with(const TranslateOptions& search) const {
  return search.guard == Guard::kNone ? alignment : average();
}

void require_precision(Precision precision, const std::string& device, const std::vector<std::string>& words) {
  if (device == "cpu" || precision != Precision::kInt8) return;
  const bool is_asked_for =
      std::any_of(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("--translate.precision"); });
  if (is_asked_for)
    throw UsageError("--precision int8 is of products on the CPU, and the model is on " + device +
                     "; expected fp32, bf16 or auto, or --device cpu");
  log_warning("the model's translate.precision, int8, is of products on the CPU; on {} they are of fp32", device);
}

}  // namespace lacuna
