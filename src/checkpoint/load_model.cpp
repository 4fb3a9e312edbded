#include <ATen/ATen.h>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/spelling.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_folder.h"
#include "config/load.h"
#include "config/run_files.h"
#include "model/parameter_path.h"

namespace lacuna {
namespace {

bool is_in_attention(const std::string& parameter) {
  return parameter.find("_attention.") != std::string::npos;  // self_attention.*, cross_attention.*
}

/// Loads the weights into a model whose attention is that of `used`.
void load_into(Transformer& model, const CheckpointContents& contents, const ModelOptions& trained, const ModelOptions& used,
               const std::string& folder) {
  require_same_units(trained, used, folder);
  const std::string change = change_of_attention(trained, used);
  if (change.empty()) return take_weights(model, contents.translating_weights(), folder);
  const AttentionFit fit = fit_attention(model, contents.translating_weights());
  if (!fit.missing.empty())
    throw CheckpointError(folder + ": it has not learned what the attention asked for needs: " + join_first(fit.missing) +
                          ". Use a type and a norm that it was trained with, or such without parameters (`norm: none`)");
  take_weights(model, fit.weights, folder);
  write_log_line(LogLevel::kInfo, folder + ": " + change + (fit.left_out.empty() ? "" : "; left out: " + join_first(fit.left_out)));
}

}  // namespace

LoadedModel load_model(const std::string& path, const std::string& device, const std::vector<std::string>& overrides) {
  std::string folder;
  const CheckpointContents contents = read_while_replaced(path, [&] { return load_checkpoint(folder = resolve_checkpoint(path)); });
  const Options trained = contents.options(folder);
  LoadedModel loaded;
  loaded.options = overrides.empty() ? trained : with_overrides(trained, overrides);
  loaded.vocabularies = contents.vocabularies;
  loaded.info = contents.info;
  const UndrawnWeights no_initialization;
  loaded.model = std::make_shared<Transformer>(loaded.options.model, sizes_of(contents.vocabularies), loaded.options.seed_value());
  load_into(*loaded.model, contents, trained.model, loaded.options.model, folder);
  loaded.model->set_step(contents.info.step);
  loaded.model->to(at::Device(device));
  loaded.model->eval();
  return loaded;
}

VocabularySizes sizes_of(const Vocabularies& vocabularies) {
  return {.src = vocabularies.src->size(), .tgt = vocabularies.tgt->size(), .shared = vocabularies.shared()};
}

Options options_of_checkpoint(const std::string& path, const std::vector<std::string>& overrides) {
  std::string folder;
  const Options trained = read_while_replaced(path, [&] {
    folder = resolve_checkpoint(path);
    read_checkpoint_info(folder);  // for its errors
    const std::string config = folder + "/" + run_files::kConfig;
    return options_from_yaml(read_file(config), config);
  });
  Options options = overrides.empty() ? trained : with_overrides(trained, overrides);
  require_same_units(trained.model, options.model, folder);
  return options;
}

AttentionFit fit_attention(const Transformer& model, const NamedTensors& weights) {
  AttentionFit fit;
  const NamedTensors parameters = weights_of(model);
  for (const auto& [name, tensor] : weights) {
    if (is_in_attention(name) && !parameters.contains(name))
      fit.left_out.push_back(name);
    else
      fit.weights.emplace(name, tensor);
  }
  for (const auto& [name, parameter] : parameters)
    if (is_in_attention(name) && !weights.contains(name)) fit.missing.push_back(name);
  return fit;
}

std::string change_of_attention(const ModelOptions& trained, const ModelOptions& used) {
  const PlanDifference changed = difference(resolve_attention(trained), resolve_attention(used));
  return changed.first.empty() ? "" : "attention of the checkpoint: " + changed.first + "; used here: " + changed.second;
}

void require_same_units(const ModelOptions& trained, const ModelOptions& used, const std::string& place) {
  const std::string units = difference_in_units(resolve_attention(trained), resolve_attention(used));
  if (!units.empty())
    throw CheckpointError(place + ": its attention has learned numbers in other units (there and here): " + units +
                          "; expected the same: keep the checkpoint's");
}

}  // namespace lacuna
