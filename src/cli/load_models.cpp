#include "cli/load_models.h"

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

}  // namespace lacuna
