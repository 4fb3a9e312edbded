#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "ablation/ablation.h"
#include "ablation/run_result.h"
#include "ablation/tables.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/output.h"
#include "base/process.h"
#include "base/spelling.h"
#include "checkpoint/run_folder.h"
#include "config/read_options.h"
#include "config/run_files.h"
#include "data/evaluation_set.h"
#include "data/training_data.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBootstrapSamples = 1000;

/// Waits until no process trains in the run folder: after `lacuna ablate` was killed, its child needs a moment to save and end.
void wait_until_free(const std::string& run) {
  const RunLock lock(run, std::chrono::minutes(1));
}

std::string why_it_failed(const ProcessResult& end, const std::string& verb) {
  if (std::string message = error_message(end.errors); !message.empty()) return message;
  if (end.signal == 0) return fmt::format("lacuna {} ended with exit code {}", verb, end.exit_code);
  return fmt::format("lacuna {} was ended by signal {} ({}){}", verb, end.signal, strsignal(end.signal),
                     end.signal == SIGKILL ? "; was memory short?" : "");
}

/// Returns the command by which runs find sacreBLEU. They are started as /proc/self/exe, so they cannot look beside the program's file.
std::string command_of(const Scorer& scorer) {
  std::string command;
  for (const std::string& word : scorer.command) {
    if (word.find(' ') != std::string::npos) return "";
    command += (command.empty() ? "" : " ") + word;
  }
  return command;
}

/// Appends a flag for each value under a key.
void append_flags(const std::string& key, const ConfigNode& value, std::vector<std::string>& words) {
  if (!value.is_map()) words.push_back(key + "=" + value.to_yaml());
  for (const auto& [name, below] : value.entries()) append_flags(key + "." + name, below, words);
}

}  // namespace

AblationRunner::AblationRunner(const AblationPlan& plan, AblationSettings settings)
    : plan_(plan), settings_(std::move(settings)), scorer_(find_sacrebleu(plan.shared.sacrebleu)), results_(results_file(plan.folder)) {}

int AblationRunner::run_all() {
  lock_ = std::make_unique<RunLock>(plan_.folder);
  make_vocabularies();
  note_shared_options();
  for (size_t i = 0; i < plan_.runs.size() && interrupt_signal() == 0; ++i) {
    const PlannedRun& run = plan_.runs[i];
    if (!is_to_be_made(run, results_)) continue;
    log_info("== {}, seed {} (run {} of {}) ==", run.variant, run.seed, i + 1, plan_.runs.size());
    make(run);
  }
  if (interrupt_signal() == 0) compare_all();
  write_reports();
  return say_how_it_ended();
}

/// Trains the vocabularies once for all runs, in the ablation's folder. The token cache is there too, made by the first run that trains.
void AblationRunner::make_vocabularies() const {
  if (plan_.shared.data.trains_vocabularies()) prepare_vocabularies(plan_.shared.data, plan_.folder, plan_.shared.seed_value());
}

/// Updates the shared fingerprint in rows that stay valid though shared options changed, as their variants have own values for these.
void AblationRunner::note_shared_options() {
  for (const PlannedRun& run : plan_.runs) {
    if (is_to_be_made(run, results_)) continue;
    RunResult row = *results_.find(run.variant, run.seed);
    if (row.shared_fingerprint == plan_.shared_fingerprint) continue;
    row.shared_fingerprint = plan_.shared_fingerprint;
    results_.put(row);
  }
}

/// Returns a row with the names of a run and no results.
RunResult AblationRunner::row_for(const PlannedRun& run) const {
  return {.variant = run.variant,
          .seed = run.seed,
          .error = "",
          .fingerprint = run.fingerprint,
          .shared_fingerprint = plan_.shared_fingerprint};
}

void AblationRunner::make(const PlannedRun& run) {
  lock_->require_in_place();
  RunResult made = row_for(run);
  try {
    made = result_of(run);
  } catch (const std::exception& failure) {  // one run that fails does not stop the others
    if (interrupt_signal() != 0) return;     // it was stopped, and goes on with the next start
    log_warning("{}, seed {} failed: {}", run.variant, run.seed, failure.what());
    made.error = failure.what();
  }
  lock_->require_in_place();
  results_.put(made);
  forget_comparisons_with(made);
  compare_all();
  write_reports();
}

RunResult AblationRunner::result_of(const PlannedRun& run) const {
  prepare_folder(run);
  start({"train", "-c", run.options.run + ".yaml"});
  RunResult result = row_for(run);
  read_training(run.options.run, result);
  result.parameters = static_cast<double>(count_parameters(checkpoint_to_score(run.options)));
  translate_and_score(run, result);
  measure_speed(run, result);
  measure_loss(run, result);
  return result;
}

/// Writes the run's configuration beside its folder, where `lacuna train` can be given it by hand, and the vocabularies into the folder.
void AblationRunner::prepare_folder(const PlannedRun& run) const {
  const fs::path folder(run.options.run);
  wait_until_free(run.options.run);
  Options options = run.options;
  if (options.sacrebleu.empty()) options.sacrebleu = command_of(scorer_);
  write_file_atomically(folder.string() + ".yaml", to_yaml(options));
  if (!options.data.trains_vocabularies()) return;
  for (const char* const name : run_files::kSpmModels) {
    const fs::path shared = fs::path(plan_.folder) / name;
    const bool has_begun = !newest_checkpoint_of(folder.string()).empty();  // with the vocabulary that lies there
    if (fs::exists(shared) && (!has_begun || !fs::exists(folder / name))) write_file_atomically(folder / name, read_file(shared));
  }
}

ScoreOptions AblationRunner::scoring_by(std::vector<std::string> metrics) const {
  return {.metrics = std::move(metrics), .tgt_lang = plan_.shared.data.tgt_lang, .joiner = plan_.shared.translate.joiner};
}

void AblationRunner::translate_and_score(const PlannedRun& run, RunResult& result) const {
  const std::string hypotheses = hypotheses_of(run.variant, run.seed);
  fs::create_directory(fs::path(hypotheses).parent_path());
  const SetFiles test(plan_.test_set);
  start(with_search_of(run, {"translate", "-m", checkpoint_to_score(run.options), "-i", test.src(), "-o", hypotheses}));
  const CorpusScores scores = score_files(scorer_, hypotheses, {test.tgt()}, scoring_by({"bleu", "chrf"}));
  result.test_set = name_of(plan_.test_set);
  result.signature = scores.bleu->signature;
  result.bleu = scores.bleu->score;
  result.chrf = scores.chrf->score;
}

void AblationRunner::measure_speed(const PlannedRun& run, RunResult& result) const {
  if (settings_.rounds == 0) return;
  const SetFiles test(plan_.test_set);
  const std::string rounds = std::to_string(settings_.rounds);
  const std::string printed = start(
      with_search_of(run, {"bench", "translate", "-m", checkpoint_to_score(run.options), "-i", test.src(), "--rounds", rounds, "--json"}));
  const nlohmann::json report = nlohmann::json::parse(printed, nullptr, /*allow_exceptions=*/false);
  if (report.is_object() && report.contains("output_tokens_per_second"))
    result.translate_speed = report["output_tokens_per_second"].get<double>();
}

/// Measures the loss on the validation set of the weights that translate: the average, if there is one. The loss stays unknown if they
/// cannot score the set: training cuts its long lines, and a table of learned positions may be too short for them.
void AblationRunner::measure_loss(const PlannedRun& run, RunResult& result) const {
  const DataOptions& data = run.options.data;
  if (data.valid.empty()) return;
  try {
    const SetFiles valid(data.valid.front());
    result.valid_loss =
        nll_per_token(start({"score", "-m", checkpoint_to_score(run.options), "--src", valid.src(), "--tgt", valid.tgt(), "--tokens",
                             "--threads", std::to_string(run.options.threads), "--device", run.options.device}));
  } catch (const DataError& error) {
    log_warning("{}, seed {} has no validation loss: {}", run.variant, run.seed, error.what());
  }
}

/// Runs a verb of this program and returns what it prints. If it fails, throws DataError for wrong input, else MachineError.
std::string AblationRunner::start(const std::vector<std::string>& words) const {
  std::vector<std::string> command = {"/proc/self/exe"};
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(), settings_.log_flags.begin(), settings_.log_flags.end());
  const ProcessResult end = run_process(command, {.is_supervised = true});
  constexpr int kWrongInput = 2;
  if (end.exit_code == kWrongInput) throw DataError(why_it_failed(end, words.front()));
  if (end.exit_code != 0) throw MachineError(why_it_failed(end, words.front()));
  return end.output;
}

/// Appends flags that translate as the run's options say, whatever its checkpoints have noted.
std::vector<std::string> AblationRunner::with_search_of(const PlannedRun& run, std::vector<std::string> words) const {
  words.insert(words.end(), {"--threads", std::to_string(run.options.threads), "--device", run.options.device});
  TranslateOptions search = run.options.translate;
  search.n_best = 1;
  append_flags("--translate", write_options(search), words);
  return words;
}

/// Compares every finished run with its baseline, unless the comparison is known.
void AblationRunner::compare_all() {
  for (const PlannedRun& run : plan_.runs) {
    const RunResult* baseline = baseline_of(run);
    if (baseline == nullptr || is_to_be_made(run, results_)) continue;
    const RunResult& ours = *results_.find(run.variant, run.seed);
    const std::optional<Comparison>& old = ours.comparison;
    const bool is_known = old && baseline->bleu_interval && old->against == baseline->variant && old->seed == baseline->seed &&
                          std::abs(old->difference - (*ours.bleu - *baseline->bleu)) < 1e-9;
    if (is_known) continue;
    if (const auto found = comparison_of(run, *baseline)) note(*found, run, *baseline);
  }
}

/// Removes comparisons with a run that has been made again, from all rows.
void AblationRunner::forget_comparisons_with(const RunResult& made) {
  const std::vector<RunResult> rows = results_.rows();
  for (RunResult row : rows) {
    if (!row.comparison || row.comparison->against != made.variant || row.comparison->seed != made.seed) continue;
    if (made.bleu && std::abs(row.comparison->difference - (row.bleu.value_or(0) - *made.bleu)) < 1e-9) continue;
    row.comparison.reset();
    results_.put(row);
  }
}

/// Compares a run with its baseline; nothing, after a warning, if they cannot be compared.
std::optional<PairedComparison> AblationRunner::comparison_of(const PlannedRun& run, const RunResult& baseline) const {
  try {
    const SetFiles test(plan_.test_set);
    return paired_bootstrap(scorer_, {hypotheses_of(baseline.variant, baseline.seed), hypotheses_of(run.variant, run.seed)}, {test.tgt()},
                            kBootstrapSamples, scoring_by({"bleu"}));
  } catch (const Error& error) {
    log_warning("{}, seed {} is not compared with {}: {}", run.variant, run.seed, run.against, error.what());
    return std::nullopt;
  }
}

/// Writes a comparison into the rows of both runs.
void AblationRunner::note(const PairedComparison& found, const PlannedRun& run, const RunResult& baseline) {
  const PairedScore &theirs = found.systems[0].scores.at(0).second, &ours = found.systems[1].scores.at(0).second;
  RunResult other = baseline, result = *results_.find(run.variant, run.seed);
  result.comparison = Comparison{
      .against = other.variant, .seed = other.seed, .difference = *result.bleu - *other.bleu, .p_value = ours.p_value.value_or(1)};
  if (std::isfinite(ours.interval)) result.bleu_interval = ours.interval;
  if (std::isfinite(theirs.interval)) other.bleu_interval = theirs.interval;
  results_.put(other);
  results_.put(result);
}

/// Returns the run of `against` with the same seed, or else its first that finished; null if none is in the table.
const RunResult* AblationRunner::baseline_of(const PlannedRun& run) const {
  if (run.against.empty()) return nullptr;
  const RunResult* same_seed = results_.find(run.against, run.seed);
  if (same_seed != nullptr && same_seed->is_ended() && plan_.scope.holds(*same_seed)) return same_seed;
  for (const RunResult& row : results_.rows())
    if (row.variant == run.against && row.is_ended() && plan_.scope.holds(row)) return &row;
  return nullptr;
}

std::string AblationRunner::hypotheses_of(const std::string& variant, int64_t seed) const {
  const fs::path run = fs::path(plan_.folder) / variant / fmt::format("seed_{}", seed);
  return (run / run_files::kTest / (name_of(plan_.test_set) + ".hyp")).string();
}

void AblationRunner::write_reports() const {
  const AblationReport report = summarize(results_.rows(), plan_.variants, plan_.scope);
  const fs::path folder(plan_.folder);
  Output markdown(folder / "table.md"), latex(folder / "table.tex"), json(folder / "table.json"), plot(folder / "plot.svg");
  markdown.write(markdown_table(report, settings_.columns));
  latex.write(latex_table(report, settings_.columns));
  json.write(json_report(report));
  plot.write(svg_plot(report));
  finish_together({&markdown, &latex, &json, &plot});
}

int AblationRunner::say_how_it_ended() const {
  std::cout << markdown_table(summarize(results_.rows(), plan_.variants, plan_.scope), settings_.columns);
  if (interrupt_signal() != 0) {
    log_info("stopped; the same command goes on where this one stopped. Tables: {}/table.md", plan_.folder);
    return 128 + interrupt_signal();
  }
  const auto is_failed = [&](const PlannedRun& run) { return is_to_be_made(run, results_); };
  const auto failed = std::count_if(plan_.runs.begin(), plan_.runs.end(), is_failed);
  if (failed > 0)
    log_warning("{} of {} failed; the same command tries again. Tables: {}/table.md", failed, counted(std::ssize(plan_.runs), "run"),
                plan_.folder);
  if (failed == 0)
    log_info("{} ended: {}/table.md, table.tex, table.json, plot.svg",
             plan_.runs.size() == 1 ? "the only run has" : fmt::format("all {} runs have", plan_.runs.size()), plan_.folder);
  return failed > 0 ? 1 : 0;
}

}  // namespace lacuna
