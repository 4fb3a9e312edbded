#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/process.h"
#include "base/spelling.h"
#include "checkpoint/average.h"
#include "checkpoint/run_folder.h"
#include "config/read_options.h"
#include "config/run_files.h"
#include "ranks/stage.h"
#include "run/joint_start.h"
#include "run/training_run.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Stands for a message about damage that CheckpointKeeper has logged already.
void ignore_damage(const std::string& /*damage*/) {}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// Hashes what decides on the scores of a test set: both sides, the weights' hash, and the search, as far as it matters here.
std::string score_fingerprint(const EvaluationSet& set, const std::string& weights, TranslateOptions search) {
  const TranslateOptions usual;
  search.n_best = usual.n_best;
  search.precision = usual.precision;
  search.shortlist = usual.shortlist;
  ContentHash hash;
  for (const std::string& part : {set.name, text_of(set.src_lines), text_of(set.tgt_lines), weights, write_options(search).to_yaml()})
    hash.add(part);
  return hash.text();
}

/// Returns the text under `key`; empty if the record has none, and so is not one of the run's.
std::string text_in(const nlohmann::json& record, const char* key) {
  return record.is_object() && record.contains(key) && record[key].is_string() ? record[key].get<std::string>() : "";
}

/// Returns, by name, the fingerprints of the test sets that a run has noted as scored: of each the last, which its files belong to.
std::map<std::string, std::string> scored_fingerprints(const fs::path& metrics) {
  std::map<std::string, std::string> fingerprints;
  std::ifstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    const auto record = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (text_in(record, "kind") == "test") fingerprints[text_in(record, "set")] = text_in(record, "fingerprint");
  }
  return fingerprints;
}

}  // namespace

void write_hypotheses(const std::string& file, const Evaluation& evaluation) {
  fs::create_directory(fs::path(file).parent_path());
  write_file_atomically(file, text_of(evaluation.hypotheses));
}

/// An average of more checkpoints than are wanted now, or of others, is not the one that is wanted.
bool RunFinish::is_averaged(int64_t step) const {
  const int64_t wanted = options_.train.average_last;
  if (wanted == 0) return true;
  const std::string averaged = averaged_path(options_.run);
  if (!fs::exists(averaged)) return false;
  CheckpointInfo info;
  try {
    info = read_checkpoint_info(averaged);
  } catch (const DamagedCheckpointError& error) {
    log_warning("{}. It is made again", error.what());
    return false;
  }
  std::set<std::string> read;
  for (const std::string& path : info.averaged_from) read.insert(fs::path(path).filename().string());
  const std::vector<std::string> last = last_checkpoints(options_.run, wanted, ignore_damage);
  return info.step == step && std::ssize(read) <= wanted &&
         std::all_of(last.begin(), last.end(), [&](const std::string& path) { return read.contains(fs::path(path).filename().string()); });
}

/// Returns the sets that no earlier start has scored with these weights and this search.
std::vector<const EvaluationSet*> RunFinish::unscored_test_sets() const {
  std::vector<const EvaluationSet*> unscored;
  if (run_.test_sets.empty()) return unscored;
  const std::string weights = hash_of_weights(checkpoint_to_score(options_));
  const std::map<std::string, std::string> scored = scored_fingerprints(fs::path(options_.run) / run_files::kMetrics);
  for (const EvaluationSet& set : run_.test_sets) {
    const auto note = scored.find(set.name);
    if (note == scored.end() || note->second != score_fingerprint(set, weights, options_.translate)) unscored.push_back(&set);
  }
  return unscored;
}

void RunFinish::complete(const TrainingState& state, TrainingLog* log) {
  at_first(run_.group, [&] { average_last(*log); });
  if (agreed_interrupt(run_.group) == 0) score_test_sets(log);
  const bool is_interrupted = agreed_interrupt(run_.group) != 0;
  at_first(run_.group, [&] {
    if (is_interrupted && !unscored_test_sets().empty())
      log->say("stopped before all sets of data.test were scored; the same command scores the rest");
    else
      log_models(state, *log);
  });
}

void RunFinish::average_last(TrainingLog& log) const {
  const int64_t wanted = options_.train.average_last;
  if (wanted == 0) return;
  const std::vector<std::string> paths = last_checkpoints(options_.run, wanted, ignore_damage);
  const std::string averaged = averaged_path(options_.run);
  try {
    save_checkpoint(averaged, average_checkpoints(paths));
  } catch (const DamagedCheckpointError& error) {
    throw DamagedCheckpointError(std::string(error.what()) + ", or remove its folder: the same command averages the others");
  }
  const int64_t there = std::ssize(paths);
  if (there < wanted)
    log.warn(fmt::format("train.average_last is {}, and the run has {} (train.keep_last, save_every)", wanted,
                         counted(there, "scheduled checkpoint")));
  log.say(there == 1 ? fmt::format("copied {} to {}: one checkpoint is its own average", paths.front(), averaged)
                     : fmt::format("averaged the last {} into {}", counted(there, "checkpoint"), averaged));
}

void RunFinish::score_test_sets(TrainingLog* log) const {
  std::string place, hash;
  CheckpointContents contents;
  const std::string read = from_first(run_.group, [&] {
    std::vector<std::string> names;
    for (const EvaluationSet* const set : unscored_test_sets()) names.push_back(set->name);
    if (names.empty()) return std::string();
    place = checkpoint_to_score(options_);
    hash = hash_of_weights(place);
    contents = load_checkpoint(place);
    names.push_back(std::to_string(contents.info.step));
    return packed(names);
  });
  if (read.empty()) return;
  std::vector<std::string> names = unpacked(read);
  const int64_t step = std::stoll(names.back());
  names.pop_back();
  const NamedTensors weights = shared_tensors(run_.group, contents.translating_weights());
  on_all_ranks(run_.group, [&] { load_weights(*run_.model, weights, place); });
  run_.model->set_step(step);
  for (const EvaluationSet& set : run_.test_sets) {
    if (std::ranges::find(names, set.name) == names.end()) continue;
    const std::optional<Evaluation> evaluation = run_.validator->evaluate(set, options_.translate, /*translates=*/true);
    if (!evaluation) return;
    at_first(run_.group, [&] {
      run_.lock->require_in_place();
      write_hypotheses((fs::path(options_.run) / run_files::kTest / (set.name + ".hyp")).string(), *evaluation);
      // Last: it says that the set is done.
      log->test(step, *evaluation, place, score_fingerprint(set, hash, options_.translate));
    });
  }
}

/// Logs which model is where, and what to do next.
void RunFinish::log_models(const TrainingState& state, TrainingLog& log) const {
  const fs::path run(options_.run);
  if (state.scores.best_step > 0 && fs::exists(run / run_files::kBest))
    log.say(fmt::format("best {}: {:.4g} after step {}, in {}", score_name(options_.train.metric), state.scores.best,
                        state.scores.best_step, (run / run_files::kBest).string()));
  log.say(fmt::format("next: lacuna translate -m {} -i FILE (it uses {})", shell_word(options_.run), checkpoint_to_score(options_)));
}

}  // namespace lacuna
