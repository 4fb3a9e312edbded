#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/line_reader.h"
#include "checkpoint/checkpoint.h"
#include "cli/bench_report.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/product_timer.h"
#include "model/weight_format.h"
#include "search/translator.h"

namespace lacuna {
namespace {

struct TranslateBenchFlags {
  std::string model, input;
  int64_t rounds = 3;
  bool json = false;
  CommonFlags common;

  void declare(CLI::App& app) {
    app.add_option("-m,--model", model, "Checkpoint or run folder")->required();
    app.add_option("-i,--input", input, "Text to translate, plain or gzip")->required();
    app.add_option("--rounds", rounds, "Times the whole text is translated; the median counts (default: 3)")->check(whole_number_from(1));
    app.add_flag("--json", json, "Print one JSON object");
    common.declare_runtime(app);
    app.allow_extras();
  }
};

std::vector<TranslationInput> lines_of(const std::string& file) {
  std::vector<TranslationInput> lines;
  std::string text;
  for (LineReader reader(file); reader.next(text);) lines.push_back({text, "", reader.line_number()});
  return lines;
}

/// Tokens of the best translations, with their ends.
int64_t tokens_of(const std::vector<TranslatedLine>& translated) {
  int64_t tokens = 0;
  for (const TranslatedLine& line : translated) tokens += static_cast<int64_t>(line.translations.front().tokens.size()) + 1;
  return tokens;
}

nlohmann::ordered_json measure(Translator& translator, const std::vector<TranslationInput>& lines, int64_t rounds) {
  const at::NoGradGuard no_gradients;
  const ProductTimer products;
  const Stopwatch whole;
  std::vector<double> seconds;
  int64_t tokens = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    const Stopwatch one;
    tokens = tokens_of(translator.translate(lines));
    seconds.push_back(one.seconds());
  }
  return {{"output_tokens_per_second", static_cast<double>(tokens) / median(seconds)},
          {"sentences_per_second", static_cast<double>(lines.size()) / median(seconds)},
          {"matrix_product_share", products.seconds() / (whole.seconds() * static_cast<double>(translator.num_workers()))}};
}

}  // namespace

int bench_translate(const std::vector<std::string>& arguments) {
  CLI::App app("Output tokens and sentences per second of translating, the share of matrix products and peak memory.",
               "lacuna bench translate");
  TranslateBenchFlags flags;
  flags.declare(app);
  if (!parse_command_line(app, arguments)) return 0;
  flags.common.apply_log_level();
  use_threads(std::max<int64_t>(flags.common.threads, 0));
  const std::vector<TranslationInput> lines = lines_of(flags.input);
  const Stopwatch loading;
  const LoadedModel loaded = load_model(flags.model);
  const double load_seconds = loading.seconds();
  const Options options = with_overrides(loaded.options, app.remaining());
  const WeightFormat format = weight_format_of(options.translate.precision);
  loaded.model->set_weight_format(format);
  Translator translator(std::make_shared<TransformerStepModel>(loaded.model), loaded.vocabularies, {options.translate});
  nlohmann::ordered_json report = measure(translator, lines, flags.rounds);
  report.update({{"load_seconds", load_seconds},
                 {"peak_mebibytes", peak_mebibytes()},
                 {"threads", at::get_num_threads()},
                 {"precision", name_of(format)},
                 {"beam_size", options.translate.beam_size},
                 {"rounds", flags.rounds}});
  print_report(report, flags.json);
  return 0;
}

}  // namespace lacuna
