#include <ATen/ATen.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/spelling.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/run_folder.h"
#include "config/load.h"
#include "config/run_files.h"
#include "model/parameter_path.h"
#include "model/precision.h"

namespace lacuna {
namespace {

bool is_in_attention(const std::string& parameter) {
  return parameter.find("_attention.") != std::string::npos;  // self_attention.*, cross_attention.*
}

/// Returns how many parameters a model has at least: matrices alone, whatever its attention.
double least_parameters(const ModelOptions& model, const VocabularySizes& sizes) {
  const auto number = [](int64_t size) { return static_cast<double>(size); };
  const double d = number(model.d_model);
  const double encoder = number(model.encoder_layers) * (4 * d + 2 * number(model.encoder_ff()));
  const double decoder = number(model.decoder_layers) * (8 * d + 2 * number(model.decoder_ff()));
  const double positions = model.positions == Positions::kLearned ? number(model.max_positions) : 0;
  return d * (encoder + decoder + number(sizes.tgt) + positions);
}

/// Searches longer than any use of them, which the configuration of a stranger's model may ask for.
struct SearchBound {
  const char* key;
  int64_t TranslateOptions::*value;
  int64_t most;
};
constexpr SearchBound kSearchBounds[] = {{"beam_size", &TranslateOptions::beam_size, 100},
                                         {"n_best", &TranslateOptions::n_best, 100},
                                         {"max_length", &TranslateOptions::max_length, 4096},
                                         {"batch_tokens", &TranslateOptions::batch_tokens, 1 << 16}};

}  // namespace

void require_room_for(const ModelOptions& model, const VocabularySizes& sizes, const NamedTensors& weights, const std::string& folder) {
  int64_t numbers = 0;
  for (const auto& [name, tensor] : weights) numbers += tensor.numel();
  const double least = least_parameters(model, sizes);
  if (least <= 2 * static_cast<double>(numbers) + 1e6) return;  // the model is built then, and says what does not fit
  throw CheckpointError(folder + "/" + run_files::kConfig + ": its model has " + fmt::format("{:.0f}", least) +
                        " parameters at least, and the checkpoint's weights are " + std::to_string(numbers) +
                        " numbers: its sizes (model.d_model, d_ff, ...) are not those it was trained with. Use another checkpoint, or copy "
                        "this one again");
}

namespace {

/// Returns which weights of a checkpoint the model takes: all, but for those of another attention than that of `used`.
NamedTensors fitting_weights(const Transformer& model, const NamedTensors& shapes, const ModelOptions& trained, const ModelOptions& used,
                             const std::string& folder) {
  require_same_units(trained, used, folder);
  AttentionFit fit = {shapes, {}, {}};
  if (const std::string change = change_of_attention(trained, used); !change.empty()) {
    fit = fit_attention(model, shapes);
    if (!fit.missing.empty())
      throw CheckpointError(folder + ": it has not learned what the attention asked for needs: " + join_first(fit.missing) +
                            ". Use a type and a norm that it was trained with, or such without parameters (`norm: none`)");
    write_log_line(LogLevel::kInfo, folder + ": " + change + (fit.left_out.empty() ? "" : "; left out: " + join_first(fit.left_out)));
  }
  require_weights_of(model, fit.weights, folder);
  return std::move(fit.weights);
}

/// Loads the model of a checkpoint folder. `round` is called with each parameter's name once the model has it.
using Rounding = std::function<void(const LoadedModel& loaded, const std::string& parameter)>;
LoadedModel load_folder(const std::string& folder, const std::string& device, const std::vector<std::string>& overrides,
                        const Rounding& round) {
  LoadedModel loaded;
  loaded.hash = hash_of_translating_files(folder);
  pass_weights_to_translate(folder, [&](const CheckpointContents& contents, const NamedTensors& shapes) -> WeightTaker {
    const Options trained = contents.options(folder);
    loaded.options = overrides.empty() ? trained : with_overrides(trained, overrides);
    loaded.vocabularies = contents.vocabularies;
    loaded.info = contents.info;
    const VocabularySizes sizes = sizes_of(contents.vocabularies);
    require_room_for(loaded.options.model, sizes, shapes, folder);
    const UndrawnWeights no_initialization;
    loaded.model = std::make_shared<Transformer>(loaded.options.model, sizes, loaded.options.seed_value());
    NamedTensors taken = fitting_weights(*loaded.model, shapes, trained.model, loaded.options.model, folder);
    return [&, taken = std::move(taken), parameters = loaded.model->named_parameters()](const std::string& name, const Tensor& weight) {
      if (!taken.contains(name)) return;
      const Tensor& parameter = parameters[name];
      parameter.set_data(weight.to(parameter.scalar_type()));
      if (round) round(loaded, name);
    };
  });
  loaded.model->set_step(loaded.info.step);
  loaded.model->to(at::Device(device));
  loaded.model->eval();
  return loaded;
}

LoadedModel load_as(const std::string& path, const std::string& device, const std::vector<std::string>& overrides, const Rounding& round) {
  return read_while_replaced(path, [&] { return load_folder(resolve_checkpoint(path), device, overrides, round); });
}

}  // namespace

LoadedModel load_model(const std::string& path, const std::string& device, const std::vector<std::string>& overrides) {
  return load_as(path, device, overrides, {});
}

LoadedModel load_model_to_translate(const std::string& path, const std::string& device, const std::vector<std::string>& overrides,
                                    std::optional<Precision> precision) {
  const at::NoGradGuard no_gradients;
  if (!at::Device(device).is_cpu()) {
    LoadedModel loaded = load_as(path, device, overrides, {});
    loaded.model->set_precision(translating_precision(precision.value_or(loaded.options.translate.precision), at::Device(device)));
    return loaded;
  }
  return load_as(path, device, overrides, [&](const LoadedModel& loaded, const std::string& parameter) {
    const Precision wanted = precision.value_or(loaded.options.translate.precision);
    loaded.model->keep_rounded(parameter, translating_precision(wanted, at::kCPU));
  });
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
    return options_from_yaml(read_checkpoint_config(folder), config);
  });
  Options options = overrides.empty() ? trained : with_overrides(trained, overrides);
  require_same_units(trained.model, options.model, folder);
  return options;
}

void restrict_search(TranslateOptions& options, const std::string& path, const std::vector<std::string>& overrides) {
  const auto is_asked_for = [&](const std::string& key) {
    return std::any_of(overrides.begin(), overrides.end(), [flag = "--translate." + key](const std::string& word) {
      return word.starts_with(flag) || word == "--translate" || word.starts_with("--translate=");
    });
  };
  for (const SearchBound& bound : kSearchBounds) {
    if (options.*bound.value <= bound.most || is_asked_for(bound.key)) continue;
    throw CheckpointError(
        fmt::format("{}: its configuration has translate.{} {}; a model itself may ask for {} at most: give --translate.{}", path,
                    bound.key, options.*bound.value, bound.most, bound.key));
  }
  if (options.shortlist.empty() || is_asked_for("shortlist")) return;
  namespace fs = std::filesystem;
  const fs::path file = behind_links(resolve_checkpoint(path)) / options.shortlist;
  if (fs::path(options.shortlist).filename() == options.shortlist && fs::exists(file)) {
    FileReader::in_untrusted_folder(file);  // for its errors
    options.shortlist = file.string();
    return;
  }
  log_warning(
      "{}: the shortlist that the model's configuration names, {}, is no file of the model's folder, and is left out; --shortlist "
      "names one",
      path, options.shortlist);
  options.shortlist.clear();
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
