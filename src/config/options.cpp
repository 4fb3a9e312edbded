#include "config/options.h"

#include <algorithm>
#include <array>

#include "config/load.h"
#include "config/option_help.h"

namespace lacuna {
namespace {

struct Preset {
  const char* name;
  int64_t d_model, num_heads, d_ff, encoder_layers, decoder_layers;
};

constexpr std::array<Preset, 5> kPresets = {{
    {"tiny", 128, 4, 512, 2, 2},
    {"small", 256, 4, 1024, 3, 3},
    {"iwslt", 512, 4, 1024, 6, 6},
    {"base", 512, 8, 2048, 6, 6},
    {"big", 1024, 16, 4096, 6, 6},
}};

/// Sizes of the preset that `model.preset` names, if it names one: what keys beside it override.
void apply_preset(const ConfigNode& tree, ModelOptions& model) {
  const ConfigNode* section = tree.find("model");
  const ConfigNode* name = section != nullptr && section->is_map() ? section->find("preset") : nullptr;
  if (name == nullptr || read_string(*name).empty()) return;
  std::vector<std::string> known;
  for (const Preset& preset : kPresets) {
    known.emplace_back(preset.name);
    if (name->text() != preset.name) continue;
    model.d_model = preset.d_model;
    model.num_heads = preset.num_heads;
    model.d_ff = preset.d_ff;
    model.encoder_layers = preset.encoder_layers;
    model.decoder_layers = preset.decoder_layers;
    return;
  }
  name->fail("known presets: " + join(known) + did_you_mean(name->text(), known));
}

}  // namespace

const CorpusOptions* DataOptions::stream() const {
  for (const CorpusOptions& corpus : train)
    if (corpus.stream) return &corpus;
  return nullptr;
}

std::vector<std::pair<std::string, std::string>> CorpusOptions::files() const {
  if (!tsv.empty()) return {{tsv, "text of both sides"}};
  return {{src, "source text"}, {tgt, "target text"}};
}

std::string CorpusOptions::files_text(const char* between) const {
  return tsv.empty() ? src + between + tgt : tsv;
}

std::string CorpusOptions::src_text() const {
  return tsv.empty() ? src : tsv + ", column " + std::to_string(columns.at(0));
}

std::string CorpusOptions::tgt_text() const {
  return tsv.empty() ? tgt : tsv + ", column " + std::to_string(columns.at(1));
}

bool Options::is_guided() const {
  return train.guided_alignment.weight > 0 &&
         std::ranges::any_of(data.train, [](const CorpusOptions& corpus) { return corpus.has_links(); });
}

AlignmentSource Options::alignment_source() const {
  if (is_guided()) return train.guided_alignment.guided(model.decoder_layers);
  return {static_cast<int>(std::max<int64_t>(0, model.decoder_layers - 2)), -1};
}

Options options_from(const ConfigNode& tree) {
  Options options;
  apply_preset(tree, options.model);
  read_options(tree, options);
  validate(options, tree);
  return options;
}

std::string search_options_help() {
  return help_lines(option_help<TranslateOptions>("translate."));
}

std::string options_help() {
  return help_lines(option_help<Options>());
}

std::string help_lines(const std::vector<OptionHelp>& options, const std::string& indent) {
  std::string text;
  for (const OptionHelp& option : options) {
    text.append(indent).append(option.key).append("  (");
    text.append(option.default_value.empty() ? "default: none" : "default ").append(option.default_value);
    if (!option.range.empty()) text.append("; ").append(option.range);
    text.append(")\n").append(indent).append("    ").append(option.meaning).append("\n");
  }
  return text;
}

}  // namespace lacuna
