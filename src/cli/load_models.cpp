#include "cli/load_models.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "search/ensemble.h"

namespace lacuna {

std::vector<LoadedModel> load_models(const std::vector<std::string>& paths, const std::string& device,
                                     const std::vector<std::string>& overrides) {
  std::vector<LoadedModel> models;
  std::vector<Vocabularies> vocabularies;
  for (const std::string& path : paths) {
    models.push_back(load_model(path, device, overrides));
    vocabularies.push_back(models.back().vocabularies);
  }
  check_same_vocabularies(vocabularies, paths);
  return models;
}

void require_precision(TranslatePrecision precision, const std::string& device, const std::vector<std::string>& words) {
  if (device == "cpu" || precision == TranslatePrecision::kAuto || precision == TranslatePrecision::kFp32) return;
  const bool is_asked_for =
      std::any_of(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("--translate.precision"); });
  if (is_asked_for)
    throw UsageError("--precision is of products on the CPU, and the model is on " + device + "; expected fp32 or auto, or --device cpu");
  log_warning("the model's translate.precision is of products on the CPU; on {} they are of fp32", device);
}

}  // namespace lacuna
