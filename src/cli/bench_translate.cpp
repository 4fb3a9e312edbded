#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "base/line_reader.h"
#include "base/log.h"
#include "base/statistics.h"
#include "checkpoint/checkpoint.h"
#include "cli/bench_report.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/forced_length.h"
#include "cli/load_models.h"
#include "cli/paired_bench.h"
#include "cli/product_timer.h"
#include "model/weight_format.h"
#include "search/translator.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

struct TranslateBenchFlags {
  std::string model, input, compare;
  int64_t rounds = 3, limit = 0, pairs = kFewestPairs, length = 0;
  bool json = false;
  CommonFlags common;

  void declare(CLI::App& app) {
    app.add_option("-m,--model", model, "Checkpoint or run folder")->required();
    app.add_option("-i,--input", input, "Text to translate, plain or gzip")->required();
    app.add_option("--limit", limit, "Only the first so many lines; 0 = all (the default)")->check(whole_number_from(0));
    auto* compares = app.add_option(
        "--compare", compare,
        std::string(kCompareHelp) + ". A pair is the whole text translated with each; softmax against itself is the control");
    app.add_option("--rounds", rounds, "Times the whole text is translated; the median counts (default: 3)")
        ->check(whole_number_from(1))
        ->excludes(compares);
    app.add_option("--pairs", pairs, "Pairs with --compare, at least 9 (default: 9)")
        ->check(whole_number_from(kFewestPairs))
        ->needs(compares);
    app.add_option("--length", length, "Tokens of each translation with --compare; 0 = the mean length of the sources (the default)")
        ->check(whole_number_from(0))
        ->needs(compares);
    app.add_flag("--json", json, "Print one JSON object");
    common.declare_runtime(app);
    app.footer(
        "Every key under `translate` and `model.attention` is a flag too: --model.attention.cross.sparsify train. --compare: eos is held "
        "back until --length, so that all attentions do the same number of steps with full beams, whatever they "
        "would "
        "say. The model is the checkpoint's with another attention; parameters that the checkpoint lacks (of a norm, say) are as drawn for "
        "training.");
    app.allow_extras();
  }
};

std::vector<TranslationInput> lines_of(const std::string& file, int64_t limit) {
  std::vector<TranslationInput> lines;
  std::string text;
  for (LineReader reader(file); (limit == 0 || static_cast<int64_t>(lines.size()) < limit) && reader.next(text);)
    lines.push_back({text, "", reader.line_number()});
  return lines;
}

/// Tokens of the best translations, with their ends.
int64_t tokens_of(const std::vector<TranslatedLine>& translated) {
  int64_t tokens = 0;
  for (const TranslatedLine& line : translated) tokens += static_cast<int64_t>(line.translations.front().tokens.size()) + 1;
  return tokens;
}

Translator translator_of(const std::shared_ptr<Transformer>& model, const Vocabularies& vocabularies, const Options& options) {
  TranslatorSettings settings{options.translate};
  if (!options.translate.shortlist.empty()) settings.shortlist = read_shortlist(options.translate.shortlist, vocabularies);
  return {std::make_shared<TransformerStepModel>(model), vocabularies, settings};
}

Json measure(const LoadedModel& loaded, const Options& options, const std::vector<TranslationInput>& lines, int64_t rounds) {
  Translator translator = translator_of(loaded.model, loaded.vocabularies, options);
  constexpr size_t kFirst = 8;  // lines that pack the weights, and are not timed
  translator.translate({lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(std::min(kFirst, lines.size()))});
  const ProductTimer products;
  const Stopwatch whole;
  std::vector<double> seconds;
  int64_t tokens = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    const Stopwatch one;
    tokens = tokens_of(translator.translate(lines));
    seconds.push_back(one.seconds());
  }
  Json report = {{"output_tokens_per_second", static_cast<double>(tokens) / median(seconds)},
                 {"sentences_per_second", static_cast<double>(lines.size()) / median(seconds)}};
  if (loaded.model->device().is_cpu())
    report["matrix_product_share"] = products.seconds() / (whole.seconds() * static_cast<double>(translator.num_workers()));
  report["rounds"] = rounds;
  return report;
}

/// Lines that hold something, and the mean number of their tokens, eos counted.
struct Sources {
  double mean_length = 0;
  std::vector<TranslationInput> lines;
};

Sources sources_of(const std::vector<TranslationInput>& lines, const Vocabulary& vocabulary) {
  Sources sources;
  for (const TranslationInput& line : lines) {
    const size_t pieces = vocabulary.encode(line.text).size();
    if (pieces == 0) continue;
    sources.lines.push_back(line);
    sources.mean_length += static_cast<double>(pieces + 1);
  }
  if (sources.lines.empty()) throw DataError("--input holds no text; expected lines to translate");
  sources.mean_length /= static_cast<double>(sources.lines.size());
  return sources;
}

/// A model with the options' attention, and the loaded model's parameters as far as it has them.
struct Variation {
  std::shared_ptr<Transformer> model;
  int64_t drawn_parameters = 0;  ///< those that it has not
};

Variation variation_of(const LoadedModel& loaded, const Options& options) {
  const at::NoGradGuard no_gradients;
  Variation variation = {std::make_shared<Transformer>(options.model, sizes_of(loaded.vocabularies), options.seed_value())};
  const NamedTensors weights = weights_of(*loaded.model);
  for (const auto& parameter : variation.model->named_parameters()) {
    at::Tensor to = parameter.value();
    const auto from = weights.find(parameter.key());
    if (from != weights.end() && from->second.sizes() == to.sizes())
      to.copy_(from->second);
    else
      variation.drawn_parameters += to.numel();
  }
  variation.model->round_to(weight_format_of(options.translate.precision, loaded.model->device()));
  variation.model->to(loaded.model->device());
  variation.model->eval();
  return variation;
}

Json compare(const LoadedModel& loaded, const Options& given, const std::vector<TranslationInput>& lines,
             const TranslateBenchFlags& flags) {
  const std::vector<Variant> variants = variants_with_control(flags.compare, {}, given);
  const Sources sources = sources_of(lines, *loaded.vocabularies.src);
  const int64_t length = flags.length > 0 ? flags.length : std::lround(sources.mean_length);
  const Options options = with_forced_length(given, length);
  const auto translator = [&](const Variation& variation) { return translator_of(variation.model, loaded.vocabularies, options); };
  Translator with_softmax = translator(variation_of(loaded, with_attention(options, variants.front())));
  Json comparisons = Json::array();
  int64_t tokens = 0;
  for (const Variant& variant : variants) {
    const Options changed = with_attention(options, variant);
    const Variation variation = variation_of(loaded, changed);
    Translator with_variant = translator(variation);
    const auto translate_with = [&](Translator& one) { return [&] { tokens = tokens_of(one.translate(sources.lines)); }; };
    PairedSeconds seconds;
    for (int64_t i = 0; i <= flags.pairs; ++i) {
      if (i == 1) seconds = {};  // the first pair packs weights
      seconds.measure(translate_with(with_softmax), translate_with(with_variant));
    }
    comparisons.push_back(comparison(variant, changed, seconds));
    comparisons.back()["drawn_parameters"] = variation.drawn_parameters;
    log_info("{}: {:.3f} of softmax's time", variant.name, comparisons.back()["ratio"].get<double>());
  }
  return {{"sentences", sources.lines.size()},
          {"mean_src_length", sources.mean_length},
          {"forced_tgt_length", length},
          {"output_tokens_per_round", tokens},
          {"comparisons", std::move(comparisons)}};
}

}  // namespace

int bench_translate(const std::vector<std::string>& arguments) {
  CLI::App app(
      "Output tokens and sentences per second of translating, peak memory, and on the CPU the share of matrix products; or, with "
      "--compare, the time of translating with other attention types over softmax's.",
      "lacuna bench translate");
  TranslateBenchFlags flags;
  flags.declare(app);
  if (!parse_command_line(app, arguments)) return 0;
  flags.common.apply_log_level();
  const std::string device = flags.common.prepared_device();
  const std::vector<TranslationInput> lines = lines_of(flags.input, flags.limit);
  const Stopwatch loading;
  const std::vector<std::string> words = overrides_of(app);
  const LoadedModel loaded = load_model(flags.model, device, words);
  require_precision(loaded.options.translate.precision, device, words);
  const double load_seconds = loading.seconds();
  const Options& options = loaded.options;
  const WeightFormat format = weight_format_of(options.translate.precision, at::Device(device));
  loaded.model->round_to(format);
  const at::NoGradGuard no_gradients;
  Json report = flags.compare.empty() ? measure(loaded, options, lines, flags.rounds) : compare(loaded, options, lines, flags);
  report["load_seconds"] = load_seconds;
  report["peak_mebibytes"] = peak_mebibytes(at::Device(device));
  report.update(
      {{"precision", name_of(format)}, {"device", device}, {"threads", at::get_num_threads()}, {"beam_size", options.translate.beam_size}});
  if (flags.compare.empty())
    print_report(report, flags.json);
  else
    print_comparisons(report, flags.json);
  return 0;
}

}  // namespace lacuna
