#include <ATen/ATen.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>

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
  LoadedModel loaded;
  const CheckpointContents contents = read_while_replaced(path, [&] {
    folder = resolve_checkpoint(path);
    loaded.hash = hash_of_translating_files(folder);
    return load_checkpoint_to_translate(folder);
  });
  const Options trained = contents.options(folder);
  loaded.options = overrides.empty() ? trained : with_overrides(trained, overrides);
  loaded.vocabularies = contents.vocabularies;
  loaded.info = contents.info;
  require_room_for(loaded.options.model, sizes_of(contents.vocabularies), contents.translating_weights(), folder);
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
