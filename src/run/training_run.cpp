#include "run/training_run.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/spelling.h"
#include "checkpoint/average.h"
#include "checkpoint/durable_files.h"
#include "checkpoint/run_folder.h"
#include "config/load.h"
#include "config/read_options.h"
#include "config/run_files.h"
#include "data/batch_stream.h"
#include "data/evaluation_set.h"
#include "kernels/bf16_product.h"
#include "model/mask_model.h"
#include "train/auto_batch.h"
#include "train/products.h"
#include "train/transformer_loss.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Of damage that the keeper of the checkpoints logs.
void ignore_damage(const std::string& /*damage*/) {}

std::string lines_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

void write_hypotheses(const fs::path& file, const Evaluation& evaluation) {
  fs::create_directories(file.parent_path());
  write_file_atomically(file, lines_of(evaluation.hypotheses));
}

void write_vocabularies(const Vocabularies& vocabularies, const fs::path& run) {
  const auto write = [&](const std::string& name, const Vocabulary& vocabulary) {
    const fs::path file = run / name,
                   note = run / (name + run_files::kTrainingNote);  // the note of what it was trained on: it is given now
    const bool is_there = fs::exists(file), is_other = is_there && read_file(file) != vocabulary.serialized();
    if (is_other)
      log_warning("{}: is another vocabulary than that of the checkpoint this run goes on from, which takes its place", file.string());
    if (is_there && !is_other && !fs::exists(note)) return;
    write_file_atomically(file, vocabulary.serialized());
    fs::remove(note);
  };
  if (vocabularies.shared()) return write(run_files::kSpmModel, *vocabularies.src);
  write(run_files::kSrcSpmModel, *vocabularies.src);
  write(run_files::kTgtSpmModel, *vocabularies.tgt);
}

/// Of what decides on the scores of a test set: both sides, the hash of the weights, the search, without what `lacuna translate` alone
/// goes by.
std::string score_fingerprint(const EvaluationSet& set, const std::string& weights, TranslateOptions search) {
  const TranslateOptions usual;
  search.n_best = usual.n_best;
  search.precision = usual.precision;
  search.shortlist = usual.shortlist;
  ContentHash hash;
  for (const std::string& part : {set.name, lines_of(set.src_lines), lines_of(set.tgt_lines), weights, write_options(search).to_yaml()})
    hash.add(part);
  return hash.text();
}

/// Of a validation set's lines, and what joins them: scores of others do not compare with its own.
std::string valid_fingerprint(const EvaluationSet& set, const std::string& joiner) {
  ContentHash hash;
  hash.add(lines_of(set.src_lines));
  hash.add(lines_of(set.tgt_lines));
  if (!joiner.empty()) hash.add(joiner);
  return hash.text();
}

/// Empty where a record has no text there: then it is none of ours.
std::string text_in(const nlohmann::json& record, const char* key) {
  return record.is_object() && record.contains(key) && record[key].is_string() ? record[key].get<std::string>() : "";
}

/// By name, those of the test sets that a run has noted as scored: the last note of each, of which its files are.
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

TrainingRun::TrainingRun(const Configuration& given) : options_(given.options), rules_(given.rules) {
  require_trainable(options_, rules_);
  scorer_ = find_scorer(options_);
  lock_ = std::make_unique<RunLock>(options_.run);
  if (prepare_run_folder(options_)) replacement_ = std::make_unique<RunReplacement>(options_);
  options_.train.precision = decided_precision(options_.train.precision, options_.device);  // `auto` counts for new runs only
  log_to_file((fs::path(folder()) / run_files::kLog).string());
  find_start();
  choose_products();
  open_evaluation_sets();
}

/// Where files are written: the run folder, once no other run is in it.
std::string TrainingRun::folder() const {
  return replacement_ ? replacement_->folder() : options_.run;
}

/// The newest checkpoint of the run, or train.init_from, or the beginning.
void TrainingRun::find_start() {
  is_resumed_ = !replacement_ && !newest_checkpoint_of(options_.run).empty();
  std::optional<ResumePoint> point = find_starting_point(options_, replacement_ != nullptr, rules_);
  kept_vocabularies_ = vocabularies_kept(point, options_.data, rules_);
  open_data();
  make_model();
  if (point) start_ = start_from(*point, data_, *model_, options_.train.reset);
  choose_batch_tokens();
  if (!point) return;
  restore(*optimizer_, *point, is_resumed_ ? std::vector<std::string>() : options_.train.reset);
  if (!is_resumed_) log_info("starting from {}", point->path);
  other_search_ = note_of_other_search(*point, options_);
}

/// A run goes on with what it began to multiply with, as far as this machine has it, and says what it has not.
void TrainingRun::choose_products() {
  if (options_.device != "cpu") return;
  const std::string note = resume_with(start_.products);
  if (!note.empty()) log_warning("{}: {}", options_.run, note);
  start_.products = products_in_use();
  if (factor_precision(options_.train, options_.device) != FactorPrecision::kBf16) start_.products.bf16.clear();  // nothing is rounded
}

void TrainingRun::open_data() {
  data_ =
      open_training_data(options_.data, folder(), options_.train.batch_tokens.value.value_or(0), options_.seed_value(), kept_vocabularies_);
  start_.corpus_fingerprint = data_.fingerprint;
}

void TrainingRun::make_model() {
  require_memory_for_model(options_, sizes_of(data_.vocabularies));
  model_ = std::make_shared<Transformer>(options_.model, sizes_of(data_.vocabularies), options_.seed_value());
  move_to(*model_, options_.device);
  model_->train();
  optimizer_ = std::make_unique<Optimizer>(FlatParameters(trained_parameters(*model_)), options_.train, model_->parameter_ranges());
}

/// `train.batch_tokens: auto`, once: the number found is part of the run's configuration from then on.
void TrainingRun::choose_batch_tokens() {
  require_measurable_memory(options_, rules_);
  if (!options_.train.batch_tokens.value) {
    const LossFunction loss = transformer_loss(model_, options_.train, options_.device);
    const MemoryFit fit = fit_batch_to_memory(loss, *optimizer_, options_.data.max_length, model_->sizes());
    log_info("batch_tokens: auto: {} tokens ({:.1f} KiB each, {:.1f} GiB free)", fit.batch_tokens,
             static_cast<double>(fit.bytes_per_token) / 1024, static_cast<double>(fit.available) / (1 << 30));
    options_.train.batch_tokens.value = fit.batch_tokens;
  }
  data_.plan.batch_tokens = *options_.train.batch_tokens.value;
}

void TrainingRun::open_evaluation_sets() {
  validation_sets_ = load_evaluation_sets(options_.data.valid, options_.data, data_);
  if (!validation_sets_.empty()) {
    fit_to_validation_set(start_, valid_fingerprint(validation_sets_.front(), options_.translate.joiner));
    if (start_.scores.validations > 0 && !other_search_.empty()) log_warning("{}", other_search_);
  }
  test_sets_ = load_evaluation_sets(options_.data.test, options_.data, data_);
  validator_ = std::make_unique<Validator>(model_, data_.vocabularies, options_, scorer_);
}

/// The run that stands in the folder goes: this one is known to start.
void TrainingRun::replace_run() {
  keeper_->require_disk_room(bytes_of_checkpoints(options_.run));
  replacement_->take_place();
  replacement_.reset();
  log_info("{}: the run of another configuration is removed, as train.overwrite says", options_.run);
}

void TrainingRun::open_log() {
  const RunLength length = {options_.train.max_steps, options_.train.max_epochs, batches_of_epoch(data_.plan)};
  log_ = std::make_unique<TrainingLog>(options_.run, start_, length, at::Device(options_.device));
}

/// The vocabulary only now: a start that fails leaves none behind, which the next would take for its own.
void TrainingRun::write_configuration() const {
  if (kept_vocabularies_) write_vocabularies(*kept_vocabularies_, options_.run);
  write_file_atomically(fs::path(options_.run) / run_files::kConfig, to_yaml(options_));
}

/// What `-m RUN` would go on translating with. Before the checkpoint that training has gone on to: a crash must not leave both.
void TrainingRun::remove_passed_average() const {
  const std::string average = averaged_path(options_.run);
  if (!is_checkpoint(average)) return;  // or it is none
  remove_folder(average);
  log_info("{} is removed: training has gone past it (an average in another folder stays)", average);
}

void TrainingRun::describe() const {
  const TrainOptions& train = options_.train;
  const int64_t tokens_per_update = *train.batch_tokens.value * train.update_freq;
  log_info("{}: {} parameters, {}, device {}, {}", options_.run, optimizer_->num_parameters(), counted(at::get_num_threads(), "thread"),
           options_.device, name_of(factor_precision(train, options_.device)));
  if (train.precision == Precision::kBf16 && options_.device == "cpu" && !has_bf16_instructions())
    log_warning("train.precision is bf16, and this processor has no instructions for it: fp32 is faster here");
  if (train.precision == Precision::kBf16x3 && factor_precision(train, options_.device) == FactorPrecision::kFp32)
    log_warning("train.precision is bf16x3, and only processors with tiles (AMX) have products for it: fp32 is used");
  log_info("effective batch: {} tokens ({} a batch x {} an update)", tokens_per_update, *train.batch_tokens.value,
           train.update_freq == 1 ? "1 batch" : fmt::format("{} batches", train.update_freq));
  const EpochSize epoch = epoch_size(data_.plan);
  const double updates_per_epoch = batches_of_epoch(data_.plan) / static_cast<double>(train.update_freq);
  log_info("an epoch: {} sentence pairs, {} source and {} target tokens, about {:.0f} updates", epoch.pairs, epoch.src_tokens,
           epoch.tgt_tokens, updates_per_epoch);
  for (const std::string& note : {note_of_no_end(train), note_of_no_validation(options_.data)})
    if (!note.empty()) log_info("{}", note);
  if (const std::string note = note_of_warmup(train, updates_per_epoch, start_); !note.empty()) log_warning("{}", note);
  if (is_resumed_) log_info("going on after step {} (epoch {}, batch {})", start_.step, start_.position.epoch + 1, start_.position.batch);
}

int TrainingRun::execute() {
  const std::unique_ptr<BatchStream> stream = make_batch_stream(data_.plan, start_.position);
  keeper_ = std::make_unique<CheckpointKeeper>(options_.run, options_.train, to_yaml(options_), data_.vocabularies, *optimizer_);
  Trainer trainer(options_.train, options_.seed_value(), transformer_loss(model_, options_.train, options_.device), *stream, *optimizer_,
                  LearningRate(options_.train, options_.model.d_model), hooks(), start_);
  trainer_ = &trainer;
  if (replacement_) replace_run();
  keeper_->tidy();
  if (const auto end = trainer.end(); end && is_averaged() && unscored_test_sets().empty()) {
    log_info("already at {}: nothing to do", in_words(*end, trainer.state(), options_.train));
    return 0;
  }
  keeper_->require_disk_room();
  open_log();
  write_configuration();
  describe();
  const TrainingEnd end = trainer.run();
  keeper_->wait();
  log_->say((end == TrainingEnd::kInterrupted ? "stopped at " : "training ended at ") + in_words(end, trainer.state(), options_.train));
  return complete(trainer);
}

TrainerHooks TrainingRun::hooks() {
  TrainerHooks hooks;
  hooks.log = [this](const TrainingProgress& progress) {
    log_->progress(progress);
    warn_of_divergence(progress);
  };
  if (!validation_sets_.empty()) hooks.validate = [this] { return validate(); };
  hooks.save = [this](const TrainingState& state, const Scores& scores, bool is_scheduled) {
    if (state.step > start_.step) remove_passed_average();
    keeper_->save(state, scores, is_scheduled);
  };
  hooks.is_interrupted = [] { return interrupt_signal() != 0; };
  hooks.on_update = [this](const TrainingState& state) {
    log_->update(state);
    keeper_->check();
  };
  hooks.warn = [this](const std::string& text) { log_->warn(text); };
  return hooks;
}

/// Once, of a loss far above that of guessing: it need not reach numbers that are not finite, of which the trainer takes care.
void TrainingRun::warn_of_divergence(const TrainingProgress& progress) {
  const double guessing = std::log(static_cast<double>(data_.vocabularies.tgt->size()));
  if (has_diverged_ || progress.nll_per_token < 2 * guessing) return;
  has_diverged_ = true;
  log_->warn(
      fmt::format("step {}: {:.4g} nats a token are lost, where guessing loses {:.2f}: training diverges. Lower train.lr or raise "
                  "train.warmup_steps",
                  progress.step, progress.nll_per_token, guessing));
}

std::optional<Scores> TrainingRun::validate() {
  model_->set_step(trainer_->state().step);
  TranslateOptions search = options_.translate;
  search.beam_size = options_.train.valid_beam_size;
  search.n_best = 1;
  std::vector<Evaluation> evaluations;
  for (const EvaluationSet& set : validation_sets_) {
    std::optional<Evaluation> evaluation = validator_->evaluate(set, search, options_.train.valid_translate);
    if (!evaluation) return {};
    evaluations.push_back(std::move(*evaluation));
  }
  return note_validation(evaluations);
}

/// The scores of the first set decide; those of others are named after their set: "newstest.bleu".
Scores TrainingRun::note_validation(const std::vector<Evaluation>& evaluations) {
  const int64_t step = trainer_->state().step;
  Scores scores;
  for (size_t i = 0; i < evaluations.size(); ++i) {
    const Evaluation& evaluation = evaluations[i];
    log_->validation(step, evaluation, validation_sets_[i], i == 0 ? options_.train.num_samples : 0, options_.translate.joiner);
    for (const auto& [name, score] : evaluation.scores) scores[i == 0 ? name : evaluation.name + "." + name] = score;
    const std::string file = fmt::format("{}step_{}.hyp", i == 0 ? "" : evaluation.name + ".", step);
    if (options_.train.valid_translate) write_hypotheses(fs::path(options_.run) / run_files::kValid / file, evaluation);
  }
  log_->attention(step, validator_->attention_summary(validation_sets_.front()));
  return scores;
}

/// Whether the average of the last checkpoints is there, if it is wanted: the end of training comes before it. One of more checkpoints than
/// are wanted now, or of others, is not.
bool TrainingRun::is_averaged() const {
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
  return info.step == trainer_->state().step && static_cast<int64_t>(read.size()) <= wanted &&
         std::all_of(last.begin(), last.end(), [&](const std::string& path) { return read.contains(fs::path(path).filename().string()); });
}

/// Those that no earlier start has scored with these weights and this search.
std::vector<const EvaluationSet*> TrainingRun::unscored_test_sets() const {
  std::vector<const EvaluationSet*> unscored;
  if (test_sets_.empty()) return unscored;
  const std::string weights = hash_of_weights(checkpoint_to_score(options_));
  const std::map<std::string, std::string> scored = scored_fingerprints(fs::path(options_.run) / run_files::kMetrics);
  for (const EvaluationSet& set : test_sets_) {
    const auto note = scored.find(set.name);
    if (note == scored.end() || note->second != score_fingerprint(set, weights, options_.translate)) unscored.push_back(&set);
  }
  return unscored;
}

int TrainingRun::complete(const Trainer& trainer) {
  if (trainer.end()) {
    average_last();
    if (interrupt_signal() == 0) score_test_sets();
    if (interrupt_signal() != 0 && !unscored_test_sets().empty())
      log_->say("stopped before all sets of data.test were scored; the same command scores the rest");
  }
  return interrupt_signal() == 0 ? 0 : 128 + interrupt_signal();
}

void TrainingRun::average_last() {
  if (options_.train.average_last == 0) return;
  const std::vector<std::string> paths = last_checkpoints(options_.run, options_.train.average_last, ignore_damage);
  const std::string averaged = averaged_path(options_.run);
  try {
    save_checkpoint(averaged, average_checkpoints(paths));
  } catch (const DamagedCheckpointError& error) {
    throw DamagedCheckpointError(std::string(error.what()) + ", or remove its folder: the same command averages the others");
  }
  if (std::ssize(paths) < options_.train.average_last)
    log_->warn(fmt::format("train.average_last is {}, and the run has {} (train.keep_last, save_every)", options_.train.average_last,
                           counted(std::ssize(paths), "scheduled checkpoint")));
  log_->say(fmt::format("averaged the last {} into {}", counted(std::ssize(paths), "checkpoint"), averaged));
}

void TrainingRun::score_test_sets() {
  const std::vector<const EvaluationSet*> sets = unscored_test_sets();
  if (sets.empty()) return;
  const std::string place = checkpoint_to_score(options_), weights = hash_of_weights(place);
  const CheckpointContents contents = load_checkpoint(place);
  load_weights(*model_, contents.translating_weights(), place);
  model_->set_step(contents.info.step);
  for (const EvaluationSet* const set : sets) {
    const std::optional<Evaluation> evaluation = validator_->evaluate(*set, options_.translate, /*translates=*/true);
    if (!evaluation) return;
    write_hypotheses(fs::path(options_.run) / run_files::kTest / (set->name + ".hyp"), *evaluation);
    // Last: it says that the set is done.
    log_->test(contents.info.step, *evaluation, place, score_fingerprint(*set, weights, options_.translate));
  }
}

}  // namespace lacuna
