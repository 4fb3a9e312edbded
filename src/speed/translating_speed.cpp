#include "speed/translating_speed.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/statistics.h"
#include "base/stopwatch.h"
#include "model/precision.h"
#include "model/transformer.h"
#include "speed/gpu_trace.h"
#include "speed/product_timer.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

/// Counts the tokens of the best translations, eos included.
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

/// A model with the attention of other options and, where names and shapes fit, the loaded model's parameters.
struct Variation {
  std::shared_ptr<Transformer> model;
  int64_t drawn_parameters = 0;  ///< parameters that the loaded model lacks
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
  variation.model->round_to(translating_precision(options.translate.precision, loaded.model->device()));
  variation.model->to(loaded.model->device());
  variation.model->eval();
  return variation;
}

}  // namespace

Json translating_speed(const LoadedModel& loaded, const std::vector<TranslationInput>& lines, int64_t rounds, bool has_profile) {
  Translator translator = translator_of(loaded.model, loaded.vocabularies, loaded.options);
  constexpr size_t kFirst = 8;  // lines of the warm-up, which packs the weights
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
  if (has_profile) {
    const GpuTrace trace(traced(loaded.model->device(), [&] { translator.translate(lines); }));
    report["profile"] = report_of(trace, 1, 1e3 * median(seconds));
  }
  return report;
}

Sources sources_with_text(const std::vector<TranslationInput>& lines, const Vocabulary& vocabulary) {
  Sources sources;
  for (const TranslationInput& line : lines) {
    const size_t pieces = vocabulary.encode(line.text).size();
    if (pieces == 0) continue;
    sources.lines.push_back(line);
    sources.mean_length += static_cast<double>(pieces + 1);
  }
  if (!sources.lines.empty()) sources.mean_length /= static_cast<double>(sources.lines.size());
  return sources;
}

Json translating_comparisons(const LoadedModel& loaded, const std::vector<NamedOptions>& compared, const Sources& sources, int64_t length,
                             int64_t pairs) {
  const Options options = with_forced_length(loaded.options, length);
  const auto translator = [&](const Variation& variation) { return translator_of(variation.model, loaded.vocabularies, options); };
  Translator with_softmax = translator(variation_of(loaded, compared.front().options));
  Json comparisons = Json::array();
  int64_t tokens = 0;
  for (const NamedOptions& other : compared) {
    const Variation variation = variation_of(loaded, other.options);
    Translator with_other = translator(variation);
    const auto translate_with = [&](Translator& one) { return [&] { tokens = tokens_of(one.translate(sources.lines)); }; };
    PairedSeconds seconds;
    for (int64_t i = 0; i <= pairs; ++i) {
      if (i == 1) seconds = {};  // the first pair packs weights
      seconds.measure(translate_with(with_softmax), translate_with(with_other));
    }
    comparisons.push_back(comparison(other, seconds));
    comparisons.back()["drawn_parameters"] = variation.drawn_parameters;
  }
  return {{"sentences", sources.lines.size()},
          {"mean_src_length", sources.mean_length},
          {"forced_tgt_length", length},
          {"output_tokens_per_round", tokens},
          {"comparisons", std::move(comparisons)}};
}

}  // namespace lacuna
