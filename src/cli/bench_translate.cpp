#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "base/device.h"
#include "base/line_reader.h"
#include "base/stopwatch.h"
#include "checkpoint/checkpoint.h"
#include "cli/bench_report.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/shared_flags.h"
#include "model/precision.h"
#include "model/transformer.h"
#include "run/load_models.h"
#include "speed/translating_speed.h"

namespace lacuna {
namespace {

using Json = nlohmann::ordered_json;

struct TranslateBenchFlags {
  std::string model, input, compare;
  int64_t rounds = 3, limit = 0, pairs = kFewestPairs, length = 0;
  bool json = false, profile = false;
  CommonFlags common;

  void declare(CLI::App& app) {
    flags::add_model(app, model)->required();
    app.add_option("-i,--input", input, "Text to translate, plain, gzip or zstd")->required();
    app.add_option("--limit", limit, "Only the first so many lines; 0 = all")->check(whole_number_from(0));
    auto* compares = app.add_option(
        "--compare", compare,
        std::string(kCompareHelp) + ". A pair is the whole text translated with each; softmax against itself is the control");
    app.add_option("--rounds", rounds, "Times the whole text is translated; the median counts")
        ->check(whole_number_from(1))
        ->excludes(compares);
    app.add_option("--pairs", pairs, "Pairs with --compare, at least 9")->check(whole_number_from(kFewestPairs))->needs(compares);
    app.add_option("--length", length, "Tokens of each translation with --compare; 0 = the mean length of the sources")
        ->check(whole_number_from(0))
        ->needs(compares);
    app.add_flag("--profile", profile,
                 "On a GPU, say what it does while the text is translated once: by kernel, with the share of time in which it is busy, "
                 "launches, synchronizations and allocations")
        ->excludes(compares);
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

Json compare(const LoadedModel& loaded, const std::vector<TranslationInput>& lines, const TranslateBenchFlags& flags) {
  const std::vector<NamedOptions> compared = compared_options(flags.compare, {}, loaded.options);
  const Sources sources = sources_with_text(lines, *loaded.vocabularies.src);
  if (sources.lines.empty()) throw DataError("--input holds no text; expected lines to translate");
  const int64_t length = flags.length > 0 ? flags.length : std::lround(sources.mean_length);
  return translating_comparisons(loaded, compared, sources, length, flags.pairs);
}

}  // namespace

int bench_translate(const std::vector<std::string>& arguments) {
  CommandLine app(
      "Output tokens and sentences per second of translating, peak memory, and on the CPU the share of matrix products; or, with "
      "--compare, the time of translating with other attention types over softmax's.",
      "lacuna bench translate");
  TranslateBenchFlags flags;
  flags.declare(app);
  if (!app.read(arguments)) return 0;
  flags.common.apply_log_level();
  const std::string device = flags.common.prepared_device();
  if (flags.profile && at::Device(device).is_cpu())
    throw UsageError("--profile of translating is of a GPU, and the device is \"" + device + "\"; leave it out, or use --device cuda");
  const std::vector<TranslationInput> lines = lines_of(flags.input, flags.limit);
  const Stopwatch loading;
  const std::vector<std::string> words = overrides_of(app);
  LoadedModel loaded = flags.compare.empty() ? load_models({flags.model}, device, words).front() : load_model(flags.model, device, words);
  restrict_search(loaded.options.translate, flags.model, words);
  require_precision(loaded.options.translate.precision, device, words);
  const double load_seconds = loading.seconds();
  const Options& options = loaded.options;
  const Precision format = translating_precision(options.translate.precision, at::Device(device));
  const at::NoGradGuard no_gradients;
  Json report = flags.compare.empty() ? translating_speed(loaded, lines, flags.rounds, flags.profile) : compare(loaded, lines, flags);
  report["load_seconds"] = load_seconds;
  report["peak_mebibytes"] = peak_mebibytes(at::Device(device));
  report.update(
      {{"precision", name_of(format)}, {"device", device}, {"threads", at::get_num_threads()}, {"beam_size", options.translate.beam_size}});
  if (!flags.compare.empty()) {
    print_comparisons(report, flags.json);
    return 0;
  }
  print_report(report, flags.json);
  if (flags.profile && !flags.json) print_gpu_profile(report["profile"], "whole text");
  return 0;
}

}  // namespace lacuna
