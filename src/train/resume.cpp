#include "train/resume.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/spelling.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/quantize.h"
#include "checkpoint/run_folder.h"
#include "config/load.h"
#include "config/read_options.h"
#include "config/run_files.h"
#include "ranks/place.h"
#include "train/run_takeover.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// A run may go on when these differ. A dot at the end stands for the whole section.
constexpr const char* kMayDiffer[] = {
    "run",
    "threads",
    "sacrebleu",
    "translate.",
    "data.src_lang",
    "data.valid.",
    "data.test.",
    "data.bad_lines",  // without bad lines both are the same, and stop refuses them
    "data.cache",
    "model.preset",  // its sizes are keys of their own
    "train.reset",
    "train.reset.",
    "train.max_epochs",
    "train.max_hours",
    "train.patience",
    "train.min_steps",
    "train.min_improvement",
    "train.valid_every",
    "train.save_every",
    "train.log_every",
    "train.keep_last",
    "train.max_bad_updates",
    "train.keep_best",
    "train.average_last",
    "train.num_samples",
    "train.exchange",
    "train.rank_timeout",
    "train.overwrite",
    "train.valid_beam_size",
};
constexpr size_t kMostKeysShown = 5;

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// True for `data.train.3.src` and the like: files may move; what is read of them is compared by fingerprint.
bool is_corpus_text(const std::string& key) {
  const std::string prefix = "data.train.";
  if (!key.starts_with(prefix)) return false;
  const std::string of_corpus = key.substr(key.find('.', prefix.size()) + 1);
  return has({"name", "src", "tgt", "tsv", "src_prefix", "skip_consumed"}, of_corpus) || of_corpus.starts_with("columns.");
}

bool may_differ(const std::string& key, const Options& stored, const Options& now) {
  for (const std::string allowed : kMayDiffer)
    if (key == allowed || (allowed.back() == '.' && key.starts_with(allowed))) return true;
  if (key == "model.attention" || key.starts_with("model.attention.")) return change_of_attention(stored.model, now.model).empty();
  if (key == "device") return stored.device.starts_with("cuda") && now.device.starts_with("cuda");
  if (key == "train.max_steps" || key == "train.decay_steps") return stored.train.schedule_end() == now.train.schedule_end();
  // Another number of corpora is another fingerprint, with which the data begin anew; another weight alone is not.
  const bool begins_anew = has(now.train.reset, "data") && stored.data.train.size() != now.data.train.size();
  return is_corpus_text(key) || (key.starts_with("data.train.") && begins_anew);
}

/// True for keys that decide which sentences are in which batch, beside the contents of corpora and vocabularies.
bool decides_on_batches(const std::string& key) {
  const bool is_weight = key.starts_with("data.train.") && key.ends_with(".weight");
  return is_weight || key == "seed" || key == "train.batch_tokens" || key.starts_with("data.max_length") || key == "data.long";
}

[[noreturn]] void refuse(const std::string& run, const Options& stored, const std::vector<ConfigDifference>& found) {
  std::string text = run + " holds a run of another configuration (there and now):";
  for (size_t i = 0; i < found.size() && i < kMostKeysShown; ++i) text += "\n  " + found[i].text();
  if (found.size() > kMostKeysShown) text += "\n  and " + std::to_string(found.size() - kMostKeysShown) + " more";
  const int64_t end = stored.train.schedule_end();
  if (end > 0 && std::ranges::find(found, "train.max_steps", &ConfigDifference::key) != found.end())
    text += "\nIts learning rate falls until update " + std::to_string(end) +
            ": for another train.max_steps, set train.decay_steps: " + std::to_string(end);
  throw ConfigError(text + "\nSet `run` to another folder, or train.overwrite: true to remove that run and start anew");
}

/// Returns what forbids resuming a stored configuration's run as `now`, in which `auto` becomes what was chosen there.
std::vector<ConfigDifference> differences_from_stored(const Options& stored, Options& now) {
  if (!now.train.batch_tokens.value) now.train.batch_tokens = stored.train.batch_tokens;
  if (now.train.precision == Precision::kAuto) now.train.precision = stored.train.precision;
  if (!now.train.warmup_steps.value) now.train.warmup_steps = stored.train.warmup_steps;
  if (!now.train.patience.value) now.train.patience = stored.train.patience;
  return forbidden_differences(stored, now);
}

/// Returns what replaces_run does. `now` takes over what was chosen there if that run resumes.
bool is_to_be_replaced(const Options& stored, Options& now) {
  Options chosen = now;
  const std::vector<ConfigDifference> found = differences_from_stored(stored, chosen);
  if (found.empty()) {
    now = std::move(chosen);
    return false;
  }
  if (!now.train.overwrite) refuse(now.run, stored, found);
  require_start_outside(now);
  return true;
}

/// Returns the configuration of a run, or else that of its newest checkpoint; empty if there is no run.
fs::path config_of(const std::string& run) {
  fs::path config = fs::path(run) / run_files::kConfig;
  const std::string newest = newest_checkpoint_of(run);
  if (!fs::exists(config)) return newest.empty() ? fs::path() : fs::path(newest) / run_files::kConfig;
  if (newest.empty() && !fs::exists(fs::path(run) / run_files::kLog))
    throw ConfigError(config.string() +
                      " is of no run, as there is neither a train.log nor a checkpoint beside it, and training would write "
                      "over it; give it another name, or set `run` to another folder");
  return config;
}

/// Returns the checkpoint that train.init_from names, directly or by its run.
std::string checkpoint_to_start_from(const TrainOptions& options) {
  try {
    return resolve_checkpoint(options.init_from);
  } catch (const CheckpointError& error) {
    throw CheckpointError(std::string("train.init_from: ") + error.what());
  }
}

/// Returns true if the scores of a run to start from are of the metric that counts now, else logs a warning.
bool compares_scores(const ResumePoint& point, const TrainingState& before, const TrainOptions& options) {
  if (before.scores.validations == 0) return true;
  const ValidMetric theirs = point.options.train.metric;
  if (theirs == options.metric) return true;
  write_log_line(LogLevel::kWarning, "train.init_from: the best score of " + point.path + " is of " + score_name(theirs) +
                                         ", and train.metric is " + score_name(options.metric) + " here: scores are counted anew");
  return false;
}

/// Returns the options that decide on validation's translations; its fingerprint covers the joiner.
TranslateOptions validation_search(const Options& options) {
  const TranslateOptions usual;
  TranslateOptions search = options.translate;
  search.beam_size = options.train.valid_beam_size;
  search.n_best = usual.n_best;
  search.batch_tokens = usual.batch_tokens;
  search.precision = usual.precision;
  search.shortlist = usual.shortlist;
  search.joiner = usual.joiner;
  return search;
}

/// Returns the checkpoint's weights, and the model's own initial ones where the checkpoint has none.
NamedTensors with_drawn_attention(const Transformer& model, AttentionFit fit) {
  const NamedTensors drawn = weights_of(model);
  for (const std::string& name : fit.missing) fit.weights.emplace(name, drawn.at(name).clone());
  return std::move(fit.weights);
}

/// Throws CheckpointError for updates of more batches than any number of ranks makes, which would have no end.
void require_possible_update(const ResumePoint& point) {
  const int64_t batches = point.state.batches_per_update, of_rank = point.options.train.update_freq;
  if (batches % of_rank == 0 && batches / of_rank <= kMostRanks) return;
  throw CheckpointError(point.path + "/" + run_files::kTrainerJson + ": batches_per_update is " + std::to_string(batches) +
                        "; expected train.update_freq of the run, " + std::to_string(of_rank) + ", times its number of ranks, " +
                        std::to_string(kMostRanks) + " at most. Use another checkpoint, or copy this one again");
}

ResumePoint point_at(const std::string& path) {
  ResumePoint point;
  point.path = path;
  point.checkpoint = load_checkpoint(path, /*with_trainer_state=*/true);
  point.state = TrainingState::from_json(point.checkpoint.trainer_json, path);
  point.options = point.checkpoint.options(path);
  require_possible_update(point);
  return point;
}

/// Returns advice for a run whose newest checkpoint, the only one with trainer state, cannot be read. `others`: the whole ones.
std::string advice_without(const std::string& run, const std::vector<std::string>& others) {
  if (others.empty()) return ", or remove its folder: the run then begins anew";
  return ". Without it this run cannot go on as if nothing had been; another can start from the weights of the one before: --run " + run +
         "_2 --train.init_from " + others.back() + " --train.reset '[optimizer, lr, data, best]'";
}

}  // namespace

std::vector<ConfigDifference> forbidden_differences(const Options& stored, const Options& now) {
  std::vector<ConfigDifference> found = differences(write_options(stored), write_options(now));
  std::erase_if(found, [&](const ConfigDifference& difference) { return may_differ(difference.key, stored, now); });
  return found;
}

bool replaces_run(const Options& options) {
  Options now = options;
  return adopt_choices(now);
}

bool adopt_choices(Options& options) {
  const fs::path config = config_of(options.run);
  return fs::exists(config) && is_to_be_replaced(options_from_yaml(read_file(config), config.string()), options);
}

bool prepare_run_folder(Options& options) {
  remove_leftovers(options.run);
  return adopt_choices(options);
}

std::optional<ResumePoint> find_resume_point(const std::string& run) {
  for (const std::string& empty : empty_checkpoints_of(run))
    log_warning("{} is an empty folder, and no checkpoint: it is left as it is", empty);
  std::vector<std::string> paths = checkpoint_paths_of(run), damaged;
  std::string newest_damage;
  for (; !paths.empty(); paths.pop_back()) {
    const std::string& path = paths.back();
    try {
      if (!is_checkpoint(path)) throw DamagedCheckpointError(path + " is damaged: it has no manifest.json");
      if (!damaged.empty() && !has_trainer_state(path)) break;
      ResumePoint point = point_at(path);
      if (!damaged.empty()) log_warning("{}. Training goes on from {}, the newest that is whole", newest_damage, path);
      point.damaged = std::move(damaged);
      return point;
    } catch (const DamagedCheckpointError& error) {
      if (damaged.empty()) newest_damage = error.what();
      damaged.push_back(path);
    }
  }
  if (damaged.empty()) return {};
  throw DamagedCheckpointError(newest_damage + advice_without(run, paths));
}

std::string set_aside(const std::string& checkpoint) {
  std::string name = checkpoint + ".damaged";
  for (int number = 2; fs::exists(fs::symlink_status(name)); ++number) name = checkpoint + ".damaged_" + std::to_string(number);
  fs::rename(checkpoint, name);
  return name;
}

std::optional<ResumePoint> find_point_to_go_back_to(const std::string& run, int64_t optimizer_updates) {
  std::vector<RunCheckpoint> checkpoints = checkpoints_of(run, [](const std::string&) {});  // CheckpointKeeper logs what is damaged
  std::erase_if(checkpoints, [](const RunCheckpoint& one) { return one.is_of_interruption(); });
  for (auto one = checkpoints.rbegin(); one != checkpoints.rend(); ++one) {
    try {
      if (!has_trainer_state(one->path)) continue;
      ResumePoint point = point_at(one->path);
      if (point.state.optimizer_updates < optimizer_updates) return point;
    } catch (const DamagedCheckpointError& error) {
      write_log_line(LogLevel::kWarning, error.what());
    }
  }
  return {};
}

ResumePoint initial_point(const TrainOptions& options) {
  ResumePoint point;
  point.path = checkpoint_to_start_from(options);
  const bool keeps_state =
      !(has(options.reset, "optimizer") && has(options.reset, "lr") && has(options.reset, "data") && has(options.reset, "best"));
  require_unrounded(point.path, read_checkpoint_info(point.path), "train on");
  if (keeps_state && !has_trainer_state(point.path)) {
    throw CheckpointError("train.init_from: " + point.path +
                          " holds weights only. Set train.reset: [optimizer, lr, data, best] to start from its weights alone, or name the "
                          "newest checkpoint of a run");
  }
  point.checkpoint = load_checkpoint(point.path, keeps_state);
  TrainingState before;
  if (keeps_state) before = TrainingState::from_json(point.checkpoint.trainer_json, point.path);
  point.options = point.checkpoint.options(point.path);
  if (!has(options.reset, "optimizer")) {
    point.state.optimizer_updates = before.optimizer_updates;
    point.state.auxiliary_updates = before.auxiliary_updates;
  }
  if (!has(options.reset, "lr")) {
    point.state.step = before.step;
    point.state.scores.decreases = before.scores.decreases;
    point.state.lr_factor = before.lr_factor;
  }
  if (!has(options.reset, "data")) {
    point.state.position = before.position;
    point.state.corpus_fingerprint = before.corpus_fingerprint;
  }
  if (!has(options.reset, "best") && compares_scores(point, before, options)) {
    const int64_t decreases = point.state.scores.decreases;
    point.state.scores = before.scores;
    point.state.valid_fingerprint = before.valid_fingerprint;
    point.state.scores.decreases = decreases;
  }
  return point;
}

void fit_to_batches(ResumePoint& point, const Options& now) {
  DataPosition& position = point.state.position;
  if (position.batch == 0) return;
  std::vector<std::string> found;
  for (const ConfigDifference& difference : differences(write_options(point.options), write_options(now)))
    if (decides_on_batches(difference.key)) found.push_back(difference.text());
  if (found.empty()) return;
  write_log_line(LogLevel::kWarning, "train.init_from: " + point.path + " stands after batch " + std::to_string(position.batch) +
                                         " of epoch " + std::to_string(position.epoch + 1) +
                                         ", and its batches are not those of this configuration (there and now): " + join(found) +
                                         ". That epoch begins anew; train.reset: [data] begins with the first");
  position.batch = 0;
}

void fit_to_attention(ResumePoint& point, const Transformer& model, const std::vector<std::string>& reset) {
  const ModelOptions& trained = point.options.model;
  if (trained.encoder_layers != model.options().encoder_layers || trained.decoder_layers != model.options().decoder_layers)
    return;  // load_weights says what does not fit
  require_same_units(trained, model.options(), point.path);
  const std::string change = change_of_attention(trained, model.options());
  if (change.empty()) return;
  const AttentionFit fit = fit_attention(model, point.checkpoint.weights);
  const std::string begin = "train.init_from: " + point.path + ": " + change;
  const std::string drawn = fit.missing.empty() ? "" : "; drawn anew: " + join_first(fit.missing),
                    left_out = fit.left_out.empty() ? "" : "; left out: " + join_first(fit.left_out);
  if (!has(reset, "optimizer") && !(drawn + left_out).empty())
    throw CheckpointError(
        begin + drawn + left_out +
        ". The optimizer's state is of other parameters then: set train.reset: [optimizer], with lr, data and best to start "
        "from the weights alone");
  CheckpointContents& contents = point.checkpoint;
  if (contents.ema_weights) contents.ema_weights = with_drawn_attention(model, fit_attention(model, *contents.ema_weights));
  contents.weights = with_drawn_attention(model, fit);
  write_log_line(LogLevel::kInfo, begin + drawn + left_out);
}

void restore(Optimizer& optimizer, const ResumePoint& point, const std::vector<std::string>& reset) {
  const bool keeps_optimizer = !has(reset, "optimizer");
  optimizer.load_weights(keeps_optimizer ? point.checkpoint.weights : point.checkpoint.translating_weights(), point.path);
  if (optimizer.has_ema() && keeps_optimizer && point.checkpoint.ema_weights)
    optimizer.load_ema_weights(*point.checkpoint.ema_weights, point.path);
  else
    optimizer.reset_ema();
  if (keeps_optimizer && point.checkpoint.trainer_tensors)
    optimizer.load_state(*point.checkpoint.trainer_tensors, point.state.optimizer_updates, point.path, point.state.auxiliary_updates);
}

void fit_to_corpus(TrainingState& state, const std::string& fingerprint, const std::vector<std::string>& reset, const std::string& place) {
  const bool is_another = !state.corpus_fingerprint.empty() && state.corpus_fingerprint != fingerprint;
  if (is_another && !has(reset, "data")) {
    throw DataError("the training corpora are not those that " + place + " was trained on up to step " + std::to_string(state.step) +
                    " (their contents, order or number changed, or their columns or src_prefix). Restore them, or set train.reset: [data] "
                    "to go on at the beginning of the new ones");
  }
  if (is_another) {
    write_log_line(LogLevel::kWarning, "the training corpora are not those that " + place + " was trained on up to epoch " +
                                           std::to_string(state.position.epoch + 1) + ", batch " + std::to_string(state.position.batch) +
                                           "; train.reset holds data: the new ones are read from their beginning");
    state.position = {};
  }
  state.corpus_fingerprint = fingerprint;
}

void fit_to_validation_set(TrainingState& state, const std::string& fingerprint) {
  const bool is_another = !state.valid_fingerprint.empty() && state.valid_fingerprint != fingerprint;
  state.valid_fingerprint = fingerprint;
  if (!is_another || state.scores.validations == 0) return;
  write_log_line(LogLevel::kWarning,
                 "data.valid: the first set is another than until step " + std::to_string(state.step) +
                     ": early stopping and the schedule count its scores anew. Checkpoints that the run already has keep their scores of "
                     "the old set, and `best` and train.keep_best compare these with the new ones: validate in a new run (train.init_from) "
                     "where they should not");
  state.scores = {.decreases = state.scores.decreases};
}

std::string note_of_other_model(const ResumePoint& point, const ModelOptions& now) {
  const std::vector<std::string> without_weights = {"activation",      "decoder_start",    "norm",
                                                    "norm_epsilon",    "num_heads",        "positions",
                                                    "position_layout", "position_spacing", "position_start"};
  std::vector<std::string> found;
  for (ConfigDifference& difference : differences(write_options(point.options.model), write_options(now))) {
    if (!has(without_weights, difference.key)) continue;
    difference.key = "model." + difference.key;
    found.push_back(difference.text());
  }
  if (found.empty()) return "";
  return "the model is another one than that of " + point.path + ", whose weights it takes (there and now): " + join(found) +
         ". Keep the values from there, unless it shall learn anew with these";
}

std::string note_of_other_search(const ResumePoint& point, const Options& now) {
  if (lower_is_better(now.train.metric)) return "";
  std::vector<std::string> found;
  for (ConfigDifference& difference : differences(write_options(validation_search(point.options)), write_options(validation_search(now)))) {
    difference.key = difference.key == "beam_size" ? "train.valid_beam_size" : "translate." + difference.key;
    found.push_back(difference.text());
  }
  if (found.empty()) return "";
  return "validation translates otherwise than it did up to " + point.path + " (there and now): " + join(found) +
         ". Scores of before and after do not compare, and early stopping, the schedule, `best` and train.keep_best compare them all the "
         "same";
}

}  // namespace lacuna
