#include <ATen/ATen.h>

#include "base/error.h"
#include "base/log.h"
#include "base/spelling.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_folder.h"
#include "config/load.h"
#include "model/mask_model.h"
#include "model/parameter_path.h"

namespace lacuna {
namespace {

AttentionPlan plan_of(const ModelOptions& model) {
  return resolve_attention(model.attention, model.encoder_layers, model.decoder_layers, model.num_heads);
}

bool is_in_attention(const std::string& parameter) {
  return parameter.find("_attention.") != std::string::npos;  // self_attention.*, cross_attention.*
}

/// The weights that a model with another attention than the checkpoint's takes of it; `left_out` are the names of the others. Throws
/// CheckpointError if it needs some that are not there.
NamedTensors weights_for(const Transformer& model, const NamedTensors& weights, const std::string& place,
                         std::vector<std::string>& left_out) {
  const NamedTensors parameters = weights_of(model);
  std::vector<std::string> missing;
  for (const auto& [name, parameter] : parameters)
    if (is_in_attention(name) && weights.count(name) == 0) missing.push_back(name);
  if (!missing.empty())
    throw CheckpointError(place + ": it has not learned what the attention asked for needs: " + join_first(missing) +
                          ". Use a type and a norm that it was trained with, or such without parameters (`norm: none`)");
  NamedTensors taken;
  for (const auto& [name, tensor] : weights) {
    if (is_in_attention(name) && parameters.count(name) == 0)
      left_out.push_back(name);
    else
      taken.emplace(name, tensor);
  }
  return taken;
}

/// Gives the weights to a model that attends as `used` says.
void load_into(Transformer& model, const CheckpointContents& contents, const ModelOptions& trained, const ModelOptions& used,
               const std::string& folder) {
  require_same_units(trained, used, folder);
  const PlanDifference changed = difference(plan_of(trained), plan_of(used));
  if (changed.first.empty()) return take_weights(model, contents.translating_weights(), folder);
  std::vector<std::string> left_out;
  take_weights(model, weights_for(model, contents.translating_weights(), folder, left_out), folder);
  const std::string rest = left_out.empty() ? "" : "; left out: " + join_first(left_out);
  write_log_line(LogLevel::kInfo, folder + ": attention of the checkpoint: " + changed.first + "; used here: " + changed.second + rest);
}

}  // namespace

LoadedModel load_model(const std::string& path, const std::string& device, const std::vector<std::string>& overrides) {
  const std::string folder = resolve_checkpoint(path);
  const CheckpointContents contents = load_checkpoint(folder);
  const Options trained = options_from_yaml(contents.config_yaml, folder + "/config.yaml");
  LoadedModel loaded;
  loaded.options = overrides.empty() ? trained : with_overrides(trained, overrides);
  loaded.vocabularies = contents.vocabularies;
  loaded.info = contents.info;
  const UndrawnWeights about_to_be_loaded;
  loaded.model = std::make_shared<Transformer>(loaded.options.model, sizes_of(contents.vocabularies), loaded.options.seed_value());
  load_into(*loaded.model, contents, trained.model, loaded.options.model, folder);
  loaded.model->set_step(contents.info.step);
  move_to(*loaded.model, device);
  loaded.model->eval();
  return loaded;
}

void require_same_units(const ModelOptions& trained, const ModelOptions& used, const std::string& place) {
  const std::string units = difference_in_units(plan_of(trained), plan_of(used));
  if (!units.empty())
    throw CheckpointError(place + ": its attention has learned numbers in other units (there and here): " + units +
                          "; expected the same: keep the checkpoint's");
}

VocabularySizes sizes_of(const Vocabularies& vocabularies) {
  return {.src = vocabularies.src->size(), .tgt = vocabularies.tgt->size(), .shared = vocabularies.shared()};
}

}  // namespace lacuna
