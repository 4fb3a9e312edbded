#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <system_error>

#include "analysis/analysis.h"
#include "analysis/analysis_tables.h"
#include "analysis/missing_measures.h"
#include "analysis/report.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/progress_bar.h"
#include "base/spelling.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "cli/checkpoint_options.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/output.h"
#include "cli/verb.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kImportanceSentences = 200;  // where --only asks for importance, and nobody says how many

struct AnalyzeFlags {
  std::vector<std::string> models, only;
  std::string output = "analysis", saved_lines, saved_layers, saved_heads;
  int gold_base = -1;
  int64_t importance_sentences = -1;
  AnalysisSettings settings;
  CommonFlags common;

  void declare(CLI::App& app) {
    app.add_option("-m,--model", models, "Checkpoint or run folder; several, each after its own -m, stand side by side in the report")
        ->required()
        ->allow_extra_args(false);
    app.add_option("--src", settings.src, "Source text, plain, gzip or zstd")->required();
    app.add_option("--tgt", settings.tgt, "Its translations, line by line: what the decoder is made to say")->required();
    auto* gold = app.add_option("--gold", settings.gold, "Gold word links, a line a pair: 0-0 sure, 1?2 or 1p2 possible");
    app.add_option("--gold-base", gold_base, "What the gold links count words from: 0 (the default) or 1")
        ->check(CLI::IsMember({0, 1}))
        ->needs(gold);
    app.add_option("-o,--output", output, "Folder for report.html, analysis.json and tables, in place of those there (default: analysis)");
    app.add_option("--only", only, "Some measures, comma-separated: " + join({std::begin(kMeasures), std::end(kMeasures)}))
        ->delimiter(',')
        ->check(CLI::IsMember(std::vector<std::string>(std::begin(kMeasures), std::end(kMeasures))));
    app.add_option("--importance-sentences", importance_sentences,
                   "Pairs on which gradient importance is measured (slow), masks of calibrated attention being held constant; default: "
                   "none, and 200 with --only importance")
        ->check(whole_number_from(0));
    app.add_flag("--shuffle-references", settings.shuffle_references,
                 "Measure rows on shuffled references too, as a control (doubles the time)");
    app.add_option("--bootstrap", settings.bootstrap_samples, "Resamples for intervals of error rates (default: 1000)")
        ->check(whole_number_from(1, 100000))
        ->needs(gold);
    app.add_option("--seed", settings.seed, "Of resamples and shuffled references (default: 1)")->check(whole_number_from(0));
    app.add_option("--explore", settings.explored,
                   "Sentences whose weights the report shows: the first N, as far as its 3 MB have room (default: 20)")
        ->check(whole_number_from(0));
    auto* save = app.add_option("--save-weights", saved_lines, "Write the weights of these lines, 1-10,15, to attention.safetensors");
    app.add_option("--save-layers", saved_layers, "Only of these layers, 0 the lowest")->needs(save);
    app.add_option("--save-heads", saved_heads, "Only of these heads, from 0")->needs(save);
    app.add_option("--batch-tokens", settings.batch_tokens, "Tokens decoded at a time (default: 3000)")->check(whole_number_from(1));
    common.declare_runtime(app);
    app.footer(
        "Every key under `model.attention` is a flag too, for all models, as far as they have the parameters:\n"
        "--model.attention.cross.sparsify always");
    app.allow_extras();
  }
};

/// "1-3,7" as numbers. Throws UsageError unless each is from `lowest` to `highest`, which `model` has, if not empty.
std::set<int64_t> numbers_of(const std::string& text, const std::string& flag, int64_t lowest, int64_t highest,
                             const std::string& model = "") {
  std::set<int64_t> numbers;
  const auto fail = [&] {
    throw UsageError(flag + " is \"" + text + "\"; expected numbers and ranges from " + std::to_string(lowest) + " to " +
                     std::to_string(highest) + ", such as 1-3,7" + (model.empty() ? "" : ", for " + model));
  };
  if (text.ends_with(',')) fail();  // split() would not see what is missing behind it
  for (const std::string& part : CLI::detail::split(text, ',')) {
    const size_t dash = part.find('-', 1);
    int64_t first = 0, last = 0;
    const auto read = [&](const std::string& word, int64_t& number) {
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
      if (error != std::errc() || end != word.data() + word.size()) fail();
    };
    read(part.substr(0, dash), first);
    if (dash == std::string::npos)
      last = first;
    else
      read(part.substr(dash + 1), last);
    if (first > last || first < lowest || last > highest) fail();
    for (int64_t number = first; number <= last; ++number) numbers.insert(number);
  }
  return numbers;
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
  if (flags.importance_sentences > 0 && !settings.wants("importance"))
    throw UsageError("--importance-sentences is given, and --only leaves importance out; drop one of them");
  const bool has_rows = settings.wants("sparsity") || settings.wants("null_rate") || settings.wants("entropy") || settings.wants("support");
  if (settings.shuffle_references && !has_rows)
    throw UsageError("--shuffle-references is given, and --only leaves sparsity, null_rate, entropy and support out; drop one of them");
}

/// Reads all files through, so that what is wrong with them is known before a model is loaded. `models` are the options of each.
void check_files(AnalyzeFlags& flags, const std::vector<Options>& models) {
  AnalysisSettings& settings = flags.settings;
  settings.num_pairs = count_pairs(settings.src, settings.tgt);
  if (!flags.saved_lines.empty())
    for (const int64_t line : numbers_of(flags.saved_lines, "--save-weights", 1, settings.num_pairs)) settings.saved_lines.insert(line - 1);
  if (settings.gold.empty()) return;
  const std::optional<int> given = flags.gold_base < 0 ? std::nullopt : std::optional(flags.gold_base);
  std::set<std::string> joiners;  // which say where the words are that links count
  for (const Options& options : models) joiners.insert(options.translate.joiner);
  for (const std::string& joiner : joiners)
    settings.gold_base = checked_base_of_gold(settings.gold, given, settings.src, settings.tgt, joiner);
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

/// The files of one model's weights and of their pieces, the `number`-th of `models`.
std::pair<std::string, std::string> weight_files(size_t number, size_t models) {
  const std::string name = models == 1 ? "attention" : "attention." + std::to_string(number);
  return {name + ".safetensors", name + ".json"};
}

/// Throws where a file that write_all() would write cannot be, before there is an analysis to lose.
void require_places_for_files(const fs::path& folder, const AnalyzeFlags& flags) {
  const AnalysisSettings& settings = flags.settings;
  std::vector<std::string> files = {"analysis.json", "report.html", "measures.csv"};
  if (!settings.gold.empty()) files.push_back("alignment.csv");
  if (settings.importance_sentences > 0) files.push_back("importance.csv");
  for (size_t i = 0; i < flags.models.size() && !settings.saved_lines.empty(); ++i) {
    const auto [weights, pieces] = weight_files(i, flags.models.size());
    files.insert(files.end(), {weights, pieces});
  }
  for (const std::string& file : files) {
    if (!is_replaceable(folder / file)) continue;  // a pipe, which waits for what comes
    const Output unwritten(folder / file, {settings.src, settings.tgt, settings.gold});
  }
}

/// Weights and pieces of one model. Returns their names.
std::set<std::string> write_weights(const fs::path& folder, const std::pair<std::string, std::string>& files, const ModelAnalysis& model) {
  nlohmann::ordered_json pieces = nlohmann::ordered_json::object();
  for (const auto& [line, sides] : model.saved_pieces) pieces[std::to_string(line)] = {{"src", sides.first}, {"tgt", sides.second}};
  write_safetensors(folder / files.first, model.saved);
  write_file_atomically(folder / files.second, json_text(pieces, 1) + "\n");
  return {files.first, files.second};
}

/// Removes what an earlier analysis wrote because it was asked for, and this one did not: it would look like this one's.
void remove_others(const fs::path& folder, const std::set<std::string>& written) {
  static const std::regex optional(R"((alignment|importance)\.csv|attention(\.\d+)?\.(safetensors|json))");
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && std::regex_match(name, optional) && !written.contains(name)) found.push_back(entry.path());
  }
  for (const fs::path& path : found) {
    std::error_code error;
    fs::remove(path, error);
    if (error) throw MachineError(path.string() + ": cannot be removed: " + error.message());
    log_info("{} is removed: it was of an earlier analysis", path.string());
  }
}

/// The folder then holds these analyses, and nothing of an earlier one.
void write_all(const fs::path& folder, const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings) {
  const bool has_earlier = fs::exists(folder / "analysis.json");
  std::set<std::string> written;
  const nlohmann::ordered_json analysis = analysis_json(models, settings);
  write_file_atomically(folder / "analysis.json", json_text(analysis, 1) + "\n");
  for (const CsvTable& table : analysis_tables(models, settings)) {
    write_file_atomically(folder / table.file, table.text);
    written.insert(table.file);
  }
  write_file_atomically(folder / "report.html", report_html(models, analysis));
  for (size_t i = 0; i < models.size() && !settings.saved_lines.empty(); ++i)
    written.merge(write_weights(folder, weight_files(i, models.size()), models[i]));
  if (has_earlier) remove_others(folder, written);
}

int run_analyze(const std::vector<std::string>& arguments) {
  CLI::App app("What a model's attention does, measured by forced decoding of given translations: one report.", "lacuna analyze");
  AnalyzeFlags flags;
  flags.declare(app);
  if (!parse_command_line(app, arguments)) return 0;
  flags.common.apply_log_level();
  refuse_wrong_values(flags, app);
  const std::string device = flags.common.prepared_device();
  const std::vector<std::string> overrides = overrides_without_search(app, "analyze");
  flags.settings.overrides = join(overrides, " ");
  flags.settings.only = {flags.only.begin(), flags.only.end()};
  refuse_contradictions(flags);
  const bool asks_importance = flags.settings.only.count("importance") > 0;
  flags.settings.importance_sentences = flags.importance_sentences >= 0 ? flags.importance_sentences
                                        : asks_importance               ? kImportanceSentences
                                                                        : 0;
  std::vector<Options> options;
  for (const std::string& path : flags.models) {
    options.push_back(options_of_checkpoint(path, overrides));
    choose_saved(flags, path, options.back().model);
  }
  require_measures(flags.models, options, flags.settings);
  check_files(flags, options);
  const fs::path folder = flags.output;
  make_output_folder(folder);
  require_places_for_files(folder, flags);
  std::vector<ModelAnalysis> models;
  for (const std::string& path : flags.models) {
    models.push_back(analyze(path, device, overrides, flags.settings, flags.common.quiet));
    for (const std::string& note : models.back().notes) log_info("{}: not measured: {}", path, note);
  }
  write_all(folder, models, flags.settings);
  if (const int64_t empty = models.front().empty_pairs; empty > 0)
    log_warning("{} of {} pairs are left out: a side is empty", empty, flags.settings.num_pairs);
  for (const ModelAnalysis& model : models)
    if (model.long_pairs.count > 0)
      log_warning("{}: {}", model.name, model.long_pairs.message("are left out", flags.settings.num_pairs, model.max_tokens));
  log_info("{}: {}; the report is {}", folder.string(), counted(models.front().pairs, "pair"), (folder / "report.html").string());
  return 0;
}

}  // namespace

Verb analyze_verb() {
  return {"analyze", "what attention does: sparsity, alignment, diversity, ...; one HTML report", run_analyze};
}

}  // namespace lacuna
