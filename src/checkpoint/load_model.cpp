#include <ATen/ATen.h>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_folder.h"
#include "config/load.h"

namespace lacuna {

LoadedModel load_model(const std::string& path, const std::string& device) {
  const std::string folder = resolve_checkpoint(path);
  const CheckpointContents contents = load_checkpoint(folder);
  LoadedModel loaded;
  loaded.options = options_from_yaml(contents.config_yaml, folder + "/config.yaml");
  loaded.vocabularies = contents.vocabularies;
  loaded.info = contents.info;
  loaded.model = std::make_shared<Transformer>(loaded.options.model, sizes_of(contents.vocabularies), loaded.options.seed_value());
  load_weights(*loaded.model, contents.translating_weights(), folder);
  loaded.model->set_step(contents.info.step);
  loaded.model->to(at::Device(device));
  loaded.model->eval();
  return loaded;
}

VocabularySizes sizes_of(const Vocabularies& vocabularies) {
  return {.src = vocabularies.src->size(), .tgt = vocabularies.tgt->size(), .shared = vocabularies.shared()};
}

}  // namespace lacuna
