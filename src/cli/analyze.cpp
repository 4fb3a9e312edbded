#include <filesystem>
#include <set>
#include <system_error>

#include "analysis/analysis.h"
#include "analysis/analysis_folder.h"
#include "base/durable_files.h"
#include "base/files.h"
#include "base/log.h"
#include "base/output.h"
#include "base/progress_bar.h"
#include "base/spelling.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kImportanceSentences = 200;  // for --only importance, if no number is given

struct AnalyzeFlags {
  std::vector<std::string> models, only;
  std::string output = "analysis", saved_lines, saved_layers, saved_heads;
  std::optional<int> gold_base;
  std::optional<int64_t> importance_sentences;
  AnalysisSettings settings;
  CommonFlags common;

  void declare(CLI::App& app) {
    flags::add_models(app, models, ", stand side by side in the report");
    const auto [source, target] = flags::add_pair(app, settings.src, settings.tgt);
    source->required();
    target->required();
    auto* gold = app.add_option("--gold", settings.gold, "Gold word links, a line a pair: 0-0 sure, 1?2 or 1p2 possible");
    flags::add_base(app, "--gold-base", gold_base, "gold links")->needs(gold);
    app.add_option("-o,--output", output, "Folder for report.html, analysis.json and tables, in place of those there");
    app.add_option("--only", only, "Some measures, comma-separated: " + join({std::begin(kMeasures), std::end(kMeasures)}))
        ->delimiter(',')
        ->check(CLI::IsMember(std::vector<std::string>(std::begin(kMeasures), std::end(kMeasures))));
    app.add_option("--importance-sentences", importance_sentences,
                   "Pairs on which gradient importance is measured (slow), the mask of a layer that has one being a constant; unless "
                   "given, none, and 200 with --only importance")
        ->check(whole_number_from(0));
    app.add_flag("--shuffle-references", settings.shuffle_references,
                 "Measure rows on shuffled references too, as a control (doubles the time)");
    app.add_option("--bootstrap", settings.bootstrap_samples, "Resamples for intervals of error rates")
        ->check(whole_number_from(1, 100000))
        ->needs(gold);
    app.add_option("--seed", settings.seed, "Seed of resamples and shuffled references")->check(whole_number_from(0));
    app.add_option("--explore", settings.explored, "Sentences whose weights the report shows: the first N, as far as its 3 MB have room")
        ->check(whole_number_from(0));
    auto* save = app.add_option("--save-weights", saved_lines, "Write the weights of these lines, 1-10,15, to attention.safetensors");
    app.add_option("--save-layers", saved_layers, "Only of these layers, 0 the lowest")->needs(save);
    app.add_option("--save-heads", saved_heads, "Only of these heads, from 0")->needs(save);
    flags::add_batch_tokens(app, settings.batch_tokens, "decoded");
    flags::add_on_error(app, settings.bad_lines, "its pair is left out");
    common.declare_runtime(app);
    app.footer(
        "Every key under `model.attention` is a flag too, for all models, as far as they have the parameters:\n"
        "--model.attention.cross.sparsify always");
    app.allow_extras();
  }
};

std::set<int64_t> numbers_of(const std::string& text, const std::string& flag, int64_t lowest, int64_t highest,
                             const std::string& model = "") {
  const std::vector<int64_t> numbers = number_ranges(text, flag, lowest, highest, model);
  return {numbers.begin(), numbers.end()};
}

/// Values that cannot be, whatever the models and texts hold.
void refuse_wrong_values(const AnalyzeFlags& flags, const CLI::App& app) {
  for (const auto& [flag, value] : {std::pair("--gold", flags.settings.gold), std::pair("--save-weights", flags.saved_lines),
                                    std::pair("--save-layers", flags.saved_layers), std::pair("--save-heads", flags.saved_heads)})
    if (app.count(flag) > 0 && value.empty()) throw UsageError(std::string(flag) + " is empty; expected a value, or leave the flag out");
  if (flags.output.empty()) throw UsageError("-o is empty; expected a folder to write to");
  std::error_code error;
  if (fs::exists(fs::path(flags.output) / Manifest::kFileName, error))
    throw UsageError("-o is " + flags.output + ", which is a checkpoint; name another folder");
  std::set<fs::path> seen;
  for (const std::string& model : flags.models)
    if (!seen.insert((fs::path(model) / "").lexically_normal()).second)
      throw UsageError("-m is " + model + " more than once, and nothing would tell one from the other; name each model once");
}

/// What was asked for and would not be done.
void refuse_contradictions(const AnalyzeFlags& flags) {
  const AnalysisSettings& settings = flags.settings;
  if (!settings.gold.empty() && !settings.wants("alignment"))
    throw UsageError("--gold is given, and --only leaves alignment out; drop one of them");
  if (settings.gold.empty() && settings.only.count("alignment") > 0) throw UsageError("--only alignment needs gold links: --gold FILE");
  if (flags.importance_sentences.value_or(0) > 0 && !settings.wants("importance"))
    throw UsageError("--importance-sentences is given, and --only leaves importance out; drop one of them");
  if (settings.shuffle_references && !settings.wants_rows())
    throw UsageError("--shuffle-references is given, and --only leaves sparsity, null_rate, entropy and support out; drop one of them");
}

/// Reads all files through, so that what is wrong with them is known before a model is loaded. `models` are the options of each.
void check_files(AnalyzeFlags& flags, const std::vector<Options>& models) {
  AnalysisSettings& settings = flags.settings;
  settings.num_pairs = count_pairs({.src = settings.src, .tgt = settings.tgt}, settings.bad_lines, kHowToSkip);
  if (!flags.saved_lines.empty())
    for (const int64_t line : numbers_of(flags.saved_lines, "--save-weights", 1, settings.num_pairs)) settings.saved_lines.insert(line - 1);
  if (settings.gold.empty()) return;
  std::set<std::string> joiners;  // which say where the words are that links count
  for (const Options& options : models) joiners.insert(options.translate.joiner);
  for (const std::string& joiner : joiners)
    settings.gold_base = checked_base_of_gold(settings.gold, flags.gold_base, settings.src, settings.tgt, joiner, settings.bad_lines);
}

/// The layers and heads of this model whose weights are saved.
void choose_saved(AnalyzeFlags& flags, const std::string& path, const ModelOptions& options) {
  const int64_t layers = std::max(options.encoder_layers, options.decoder_layers);
  AnalysisSettings& settings = flags.settings;
  if (!flags.saved_layers.empty()) settings.saved_layers = numbers_of(flags.saved_layers, "--save-layers", 0, layers - 1, path);
  if (!flags.saved_heads.empty()) settings.saved_heads = numbers_of(flags.saved_heads, "--save-heads", 0, options.num_heads - 1, path);
}

ModelAnalysis analyze(const std::string& path, const std::string& device, const std::vector<std::string>& overrides,
                      const AnalysisSettings& settings, bool is_quiet) {
  const LoadedModel loaded = load_model(path, device, overrides);
  LineProgress bar(path, settings.num_pairs, is_quiet);
  try {
    const AnalyzedModel model = {path, *loaded.model, loaded.vocabularies, loaded.options.translate.joiner};
    return analyze_model(model, settings, [&](int64_t pairs) { bar.add(pairs); });
  } catch (const CheckpointError& error) {
    throw CheckpointError(path + ": " + error.what());
  }
}

int run_analyze(const std::vector<std::string>& arguments) {
  CommandLine app("What a model's attention does, measured by forced decoding of given translations: one report.", "lacuna analyze");
  AnalyzeFlags flags;
  flags.declare(app);
  if (!app.read(arguments)) return 0;
  flags.common.apply_log_level();
  refuse_wrong_values(flags, app);
  const std::string device = flags.common.prepared_device();
  const std::vector<std::string> overrides = overrides_without_search(app, "analyze");
  flags.settings.overrides = join(overrides, " ");
  flags.settings.only = {flags.only.begin(), flags.only.end()};
  refuse_contradictions(flags);
  const bool asks_importance = flags.settings.only.count("importance") > 0;
  flags.settings.importance_sentences = flags.importance_sentences.value_or(asks_importance ? kImportanceSentences : 0);
  std::vector<Options> options;
  for (const std::string& path : flags.models) {
    options.push_back(options_of_checkpoint(path, overrides));
    choose_saved(flags, path, options.back().model);
  }
  require_measures(flags.models, options, flags.settings);
  check_files(flags, options);
  const fs::path folder = flags.output;
  make_output_folder(folder);
  require_places_for_files(folder, flags.settings, flags.models.size());
  std::vector<ModelAnalysis> models;
  for (const std::string& path : flags.models) {
    models.push_back(analyze(path, device, overrides, flags.settings, flags.common.quiet));
    for (const std::string& note : models.back().notes) log_info("{}: not measured: {}", path, note);
  }
  write_analysis(folder, models, flags.settings);
  if (const int64_t empty = models.front().empty_pairs; empty > 0)
    log_warning("{} of {} pairs {} left out: a side is empty", empty, flags.settings.num_pairs, empty == 1 ? "is" : "are");
  for (const ModelAnalysis& model : models)
    if (model.long_pairs.count > 0)
      log_warning("{}: {}", model.name,
                  model.long_pairs.message(model.long_pairs.count == 1 ? "is left out" : "are left out", flags.settings.num_pairs,
                                           model.max_tokens));
  log_info("{}: {}; the report is {}", folder.string(), counted(models.front().pairs, "pair"), (folder / "report.html").string());
  flags::require_none_passed_over(models.front().bad_pairs, flags.settings.num_pairs);
  return 0;
}

}  // namespace

Verb analyze_verb() {
  return {"analyze", "what attention does: sparsity, alignment, diversity, ...; one HTML report", run_analyze};
}

}  // namespace lacuna
