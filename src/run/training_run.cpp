#include "run/training_run.h"

#include <ATen/ATen.h>
#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <filesystem>
#include <utility>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/process.h"
#include "base/spelling.h"
#include "checkpoint/run_folder.h"
#include "config/load.h"
#include "config/run_files.h"
#include "data/batch_maker.h"
#include "ranks/stage.h"
#include "run/joint_start.h"
#include "run/remarks.h"
#include "run/starting_point.h"
#include "train/diagnosis.h"
#include "train/resume.h"
#include "train/trainer.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr char kUpdating[] = "update";

void write_vocabulary(const fs::path& run, const std::string& name, const Vocabulary& vocabulary) {
  const fs::path file = run / name, note = run / (name + run_files::kTrainingNote);
  const bool is_there = fs::exists(file), is_other = is_there && read_file(file) != vocabulary.serialized();
  if (is_other)
    log_warning("{}: is another vocabulary than that of the checkpoint this run goes on from, which takes its place", file.string());
  if (is_there && !is_other) return;
  write_file_atomically(file, vocabulary.serialized());
  fs::remove(note);  // it says what the vocabulary was trained on, and this one was given
}

void write_vocabularies(const Vocabularies& vocabularies, const fs::path& run) {
  if (vocabularies.shared()) return write_vocabulary(run, run_files::kSpmModel, *vocabularies.src);
  write_vocabulary(run, run_files::kSrcSpmModel, *vocabularies.src);
  write_vocabulary(run, run_files::kTgtSpmModel, *vocabularies.tgt);
}

/// Returns what `is_so` says at rank 0.
template <class Question>
bool is_so_at_first(Group& group, const Question& is_so) {
  return from_first(group, [&] { return std::string(is_so() ? "yes" : ""); }) == "yes";
}

/// Removes the average of a run that trains on: `-m RUN` would translate with it. It goes before the checkpoint that training has come to
/// is saved: a crash must not leave both.
void remove_outdated_average(const std::string& run) {
  const std::string average = averaged_path(run);
  if (!is_checkpoint(average)) return;
  remove_folder(average);
  log_info("{} is removed: training has gone past it (an average in another folder stays)", average);
}

}  // namespace

TrainingRun::TrainingRun(RunSetup setup, Watch& watch)
    : run_(std::move(setup)),
      options_(run_.options),
      group_(run_.group),
      watch_(watch),
      keeper_(
          options_.run, options_.train, to_yaml(options_), run_.data.vocabularies, *run_.optimizer,
          [this] { run_.lock->require_in_place(); }, group_) {}

int TrainingRun::execute() {
  begin_at(run_.state);
  at_first(group_, [&] {
    if (run_.replacement) replace_old_run();
    for (const std::string& damaged : run_.damaged) log_warning("{} is damaged, and set aside as {}", damaged, set_aside(damaged));
    keeper_.tidy();
  });
  RunFinish finish(run_);
  if (const auto end = trainer_->end(); end && is_so_at_first(group_, [&] { return finish.is_done(trainer_->state().step); })) {
    keeper_.wait();  // no checkpoint before the last one is needed any more
    log_info("already finished: {}; nothing to do", end_text(*end, trainer_->state(), options_.train));
    return 0;
  }
  at_first(group_, [&] {
    keeper_.require_disk_room();
    open_log();
    write_configuration();
    log_setup(run_);
  });
  if (!group_.is_first()) set_least_log_level(LogLevel::kWarning);
  watch_.at(trainer_->state().step + 1, kUpdating);
  const TrainingEnd end = train();
  keeper_.wait(end == TrainingEnd::kInterrupted);
  agreed_interrupt(group_);
  const TrainingState& state = trainer_->state();
  at_first(group_, [&] {
    log_->say((end == TrainingEnd::kInterrupted ? "stopped at " : "training finished: ") + end_text(end, state, options_.train));
    run_.lock->require_in_place();
  });
  watch_.at(state.step, "the end: average and test sets");
  if (trainer_->end()) finish.complete(state, log_.get());
  at_first(group_, [&] { log_->sync(); });
  const int signal = agreed_interrupt(group_);
  return signal == 0 ? 0 : 128 + signal;
}

void TrainingRun::begin_at(const TrainingState& state) {
  stream_ = make_batch_stream(run_.data.plan, state.position,
                              {.rank = group_.rank(), .size = group_.size(), .per_update = state.batches_per_update});
  trainer_ = std::make_unique<Trainer>(options_.train, options_.seed_value(), transformer_loss(run_.model, options_.train, options_.device),
                                       *stream_, *run_.optimizer, LearningRate(options_.train, options_.model.d_model), hooks(), state);
}

/// Trains to the end; goes back once if training diverges.
TrainingEnd TrainingRun::train() {
  while (true) {
    try {
      return trainer_->run();
    } catch (const DivergedError& error) {
      keeper_.drop_unproved();
      warn(error.what());
      diagnose();
      if (!go_back()) end_together(group_, std::current_exception());
    }
  }
}

/// Logs what all ranks know, once.
void TrainingRun::warn(const std::string& text) {
  at_first(group_, [&] { log_->warn(text); });
}

/// Takes up the newest good checkpoint with a lower learning rate, as a new start would: whatever ends this process, the next goes on in
/// the same way. Returns false if there is none, or training has gone back before.
bool TrainingRun::go_back() {
  constexpr double kFactor = 0.5;
  const TrainingState& now = trainer_->state();
  keeper_.wait(/*goes_on=*/true);
  if (now.went_back_from > 0) {
    warn(fmt::format("training has gone back once before, from step {}: it ends here", now.went_back_from));
    return false;
  }
  if (run_.data.plan.stream) {
    warn("the text of earlier updates is a stream, which cannot be read again: it ends here. Start it with a lower train.lr");
    return false;
  }
  std::optional<ResumePoint> point;
  at_first(group_, [&] { point = find_point_to_go_back_to(options_.run, now.optimizer_updates); });
  point = shared_point(group_, std::move(point));
  if (!point) {
    warn("there is no earlier checkpoint of this run to go back to: it ends here");
    return false;
  }
  at_first(group_, [&] {
    for (const RunCheckpoint& checkpoint : checkpoints_of(options_.run, [](const std::string&) {}))
      if (checkpoint.step > point->state.step) remove_folder(checkpoint.path);
  });
  TrainingState state = point->state.step == run_.state.step ? run_.state : point->state;
  state.batches_per_update = run_.state.batches_per_update;
  state.went_back_from = now.step;
  state.lr_factor *= kFactor;
  on_all_ranks(group_, [&] { restore(*run_.optimizer, *point); });
  run_.model->weights_changed();
  run_.state = state;
  has_diverged_ = false;
  begin_at(state);
  at_first(group_, [&] {
    keeper_.tidy();
    log_.reset();
    open_log();
    log_->warn(
        fmt::format("going back to {} with {:g} times the learning rate; if training diverges again, it ends", point->path, kFactor));
  });
  return true;
}

/// Logs which numbers are none, and saves the sentence pairs of the last update.
void TrainingRun::diagnose() {
  if (const std::string found = run_.optimizer->not_finite(); !found.empty()) warn("diagnosis: " + found);
  const SavedUpdate update = {trainer_->state().step, gathered_batches(group_, trainer_->last_batches())};
  at_first(group_, [&] {
    if (!update.batches.empty()) diagnose(update);
  });
}

void TrainingRun::diagnose(const SavedUpdate& update) {
  log_->warn(diagnosis_of(update, transformer_loss(run_.model, options_.train, options_.device), options_.seed_value(), *run_.optimizer));
  const std::string file = (fs::path(options_.run) / run_files::kBadBatch).string();
  try {
    update.write(file, run_.data.vocabularies);
  } catch (const MachineError& error) {
    log_->warn(error.what());
    return;
  }
  log_->warn(fmt::format("its sentence pairs are in {}; to repeat them with the newest checkpoint: lacuna check -c {} --replay {}", file,
                         shell_word((fs::path(options_.run) / run_files::kConfig).string()), shell_word(file)));
}

/// Removes the run that stands in the folder, now that this one is known to start.
void TrainingRun::replace_old_run() {
  keeper_.require_disk_room(bytes_of_checkpoints(options_.run));
  run_.replacement->take_place();
  run_.replacement.reset();
  log_info("{}: the run of another configuration is removed, as train.overwrite says", options_.run);
}

/// Writes the resolved configuration, and the vocabularies if they are a checkpoint's. Not before a start is known not to fail.
void TrainingRun::write_configuration() const {
  if (run_.kept_vocabularies) write_vocabularies(*run_.kept_vocabularies, options_.run);
  write_file_atomically(fs::path(options_.run) / run_files::kConfig, to_yaml(options_));
}

void TrainingRun::open_log() {
  const RunLength length = {options_.train.max_steps, options_.train.max_epochs,
                            updates_per_epoch(run_.state.batches_per_update, run_.data)};
  run_.lock->require_in_place();
  log_ = std::make_unique<TrainingLog>(options_.run, run_.state, length, at::Device(options_.device), !group_.is_alone());
  run_.lock->require_in_place();
}

TrainerHooks TrainingRun::hooks() {
  TrainerHooks hooks;
  hooks.log = [this](const TrainingProgress& progress) {
    at_first(group_, [&] {
      run_.lock->require_in_place();
      log_->progress(progress);
      warn_of_divergence(progress);
    });
  };
  if (!run_.validation_sets.empty()) hooks.validate = [this] { return validate(); };
  hooks.save = [this](const TrainingState& state, const Scores& scores, bool is_scheduled) {
    watch_.at(state.step, "saving");
    at_first(group_, [&] {
      run_.lock->require_in_place();
      log_->sync();  // a checkpoint is never there without the records up to it
    });
    keeper_.save(state, scores, is_scheduled);  // which is not written yet
    saved_updates_ = state.optimizer_updates;
    if (state.step > run_.state.step) at_first(group_, [&] { remove_outdated_average(options_.run); });
    watch_.at(state.step + 1, kUpdating);
  };
  hooks.is_interrupted = [] { return interrupt_signal() != 0; };
  hooks.on_update = [this](const TrainingState& state, const UpdateProgress& update) {
    watch_.at(state.step + 1, kUpdating);
    if (log_) log_->update(state, update);
    // On a GPU the state may not know of the first update with these weights yet.
    if (state.skipped_in_a_row == 0 && state.optimizer_updates != saved_updates_) keeper_.confirm();
    keeper_.check();
  };
  hooks.warn = [this](const std::string& text) { log_ ? log_->warn(text) : log_warning("{}", text); };
  return hooks;
}

/// Warns once if the loss is far above that of guessing. It need not become infinite for that; if it does, the trainer ends the run.
void TrainingRun::warn_of_divergence(const TrainingProgress& progress) {
  const double guessing = std::log(static_cast<double>(run_.data.vocabularies.tgt->size()));
  if (has_diverged_ || progress.nll_per_token < 2 * guessing) return;
  has_diverged_ = true;
  log_->warn(
      fmt::format("step {}: the loss is {:.4g} nats a token, where guessing has {:.2f}: training diverges. Lower train.lr or raise "
                  "train.warmup_steps",
                  progress.step, progress.nll_per_token, guessing));
}

std::optional<Scores> TrainingRun::validate() {
  watch_.at(trainer_->state().step, "validation");
  run_.model->set_step(trainer_->state().step);
  TranslateOptions search = options_.translate;
  search.beam_size = options_.train.valid_beam_size;
  search.n_best = 1;
  std::vector<Evaluation> evaluations;
  for (const EvaluationSet& set : run_.validation_sets) {
    std::optional<Evaluation> evaluation = run_.validator->evaluate(set, search, options_.train.valid_translate);
    if (!evaluation) return {};
    evaluations.push_back(std::move(*evaluation));
  }
  at_first(group_, [&] { log_validation(evaluations); });
  watch_.at(trainer_->state().step + 1, kUpdating);
  return scores_of(evaluations);
}

/// Returns the scores by name: those of the first set, which decides, as they are, those of the others after their set, "newstest.bleu".
Scores TrainingRun::scores_of(const std::vector<Evaluation>& evaluations) {
  Scores scores;
  for (size_t i = 0; i < evaluations.size(); ++i)
    for (const auto& [name, score] : evaluations[i].scores) scores[i == 0 ? name : evaluations[i].name + "." + name] = score;
  return scores;
}

void TrainingRun::log_validation(const std::vector<Evaluation>& evaluations) {
  run_.lock->require_in_place();
  const int64_t step = trainer_->state().step;
  for (size_t i = 0; i < evaluations.size(); ++i) {
    const Evaluation& evaluation = evaluations[i];
    log_->validation(step, evaluation, run_.validation_sets[i], i == 0 ? options_.train.num_samples : 0, options_.translate.joiner);
    const std::string file = fmt::format("{}step_{}.hyp", i == 0 ? "" : evaluation.name + ".", step);
    if (options_.train.valid_translate) write_hypotheses((fs::path(options_.run) / run_files::kValid / file).string(), evaluation);
  }
  log_best(scores_of(evaluations));
  log_->attention(step, run_.validator->attention_summary(run_.validation_sets.front()));
}

/// Logs whether the score that decides is a new best one.
void TrainingRun::log_best(const Scores& scores) const {
  const std::string metric = score_name(options_.train.metric);
  if (!scores.contains(metric)) return;  // the trainer says what is missing
  ScoreHistory history = trainer_->state().scores;
  const ScoreHistory before = history;
  history.add(scores.at(metric), trainer_->state().step, options_.train);
  const int64_t patience = options_.train.patience.value_or(0);
  if (history.best_step != before.best_step)
    log_->say(fmt::format("  new best {}: {:.4g}{}", metric, history.best,
                          before.validations == 0 ? "" : fmt::format(" ({:.4g} after step {})", before.best, before.best_step)));
  else
    log_->say(fmt::format("  no better {} in {} since step {}{}", metric, counted(history.since_best, "validation"), history.best_step,
                          patience == 0 ? "" : fmt::format("; training ends after {} (train.patience)", patience)));
}

}  // namespace lacuna
