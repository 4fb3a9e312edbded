#include "train/trainer.h"

#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <cmath>

#include "base/device.h"
#include "base/error.h"
#include "base/ragged.h"
#include "base/spelling.h"
#include "kernels/profile.h"
#include "kernels/shape_lists.h"
#include "model/precision.h"
#include "ranks/stage.h"

namespace lacuna {
std::optional<TrainingEnd> end_of(const TrainingState& state, double hours, const TrainOptions& options) {
  if (state.validation_is_due || state.save_is_due) return {};
  if (state.data_is_over) return TrainingEnd::kDataOver;
  if (options.max_steps > 0 && state.step >= options.max_steps) return TrainingEnd::kMaxSteps;
  if (options.max_epochs > 0 && state.position.epoch >= options.max_epochs) return TrainingEnd::kMaxEpochs;
  if (options.max_hours > 0 && hours >= options.max_hours) return TrainingEnd::kMaxHours;
  const int64_t patience = options.patience.value_or(0);
  const bool may_stop = patience > 0 && state.step >= options.min_steps;
  if (may_stop && state.scores.since_best >= patience) return TrainingEnd::kNoImprovement;
  return {};
}

LossFunction transformer_loss(std::shared_ptr<Transformer> model, const TrainOptions& options, const std::string& device) {
  const AlignmentSource guided = options.guided_alignment.guided(model->options().decoder_layers);
  return [model = std::move(model), smoothing = options.label_smoothing, precision = factor_precision(options.precision, device),
          where = at::Device(device), guided, weight = options.guided_alignment.weight](const Batch& batch, ForwardContext context) {
    if (context.training) context.precision = precision;
    const auto add_more = [&](Upload& upload) { model->prepare(batch.src_shape, batch.tgt_shape, context, upload); };
    const auto [src, tgt] = batch_on(where, {batch.src, batch.src_shape}, {batch.tgt, batch.tgt_shape}, add_more);
    return model->loss(src, tgt, smoothing, context, {guided, weight, batch.links});
  };
}

std::vector<ParameterGroup> trained_parameters(const Transformer& model) {
  const AuxiliaryLoss* const auxiliary = model.auxiliary_loss();
  std::vector<ParameterGroup> groups = {{"main", {}}};
  if (auxiliary != nullptr) groups.push_back({"auxiliary", {}});
  for (const auto& parameter : model.named_parameters()) {
    const bool is_auxiliary = auxiliary != nullptr && auxiliary->trains(parameter.key());
    groups[is_auxiliary ? 1 : 0].parameters.emplace_back(parameter.key(), parameter.value());
  }
  return groups;
}

Trainer::Trainer(const TrainOptions& options, uint64_t seed, LossFunction loss, BatchStream& data, Optimizer& optimizer,
                 LearningRate learning_rate, TrainerHooks hooks, TrainingState state)
    : options_(options),
      seed_(seed),
      loss_(std::move(loss)),
      data_(data),
      optimizer_(optimizer),
      learning_rate_(std::move(learning_rate)),
      hooks_(std::move(hooks)),
      state_(std::move(state)),
      group_(optimizer.group()),
      hours_before_(state_.hours),
      hours_at_update_(state_.hours) {
  if (!hooks_.validate) state_.validation_is_due = false;  // a run may go on without
  if (state_.batches_per_update == 0) state_.batches_per_update = options_.update_freq * group_.size();
}

TrainingEnd Trainer::run() {
  since_start_.emplace();
  seconds_waited_before_ = data_.seconds_waited();
  run_due_hooks();  // left over from an interruption
  while (!end()) {
    const Stopwatch one;
    const std::optional<bool> ended_epoch = update();
    if (!ended_epoch) break;
    last_update_.seconds = one.seconds();
    update_seconds_ += last_update_.seconds;
    show_progress();
    note_due(*ended_epoch);
    run_due_hooks();
  }
  end_together(group_, std::exchange(failure_, {}));
  finish();
  return end().value_or(TrainingEnd::kInterrupted);
}

/// Calls on_update. What it throws on one of several ranks is kept for the next report, as others would wait for this rank.
void Trainer::show_progress() {
  try {
    hooks_.on_update(state_, last_update_);
  } catch (const LostRankError&) {
    throw;
  } catch (...) {
    if (group_.is_alone()) throw;
    failure_ = std::current_exception();
  }
}

std::optional<bool> Trainer::update() {
  if (optimizer_.can_queue()) return queue_update();
  OwnBatches own;
  const std::vector<UpdateReport> reports = agree(compute_own(own));
  if (std::any_of(reports.begin(), reports.end(), [](const UpdateReport& report) { return report.is_interrupted; })) {
    optimizer_.clear_gradients();
    return {};
  }
  hours_at_update_ = reports.front().hours;
  note_waits(reports);
  const UpdateSums sums = sum_of(reports);
  std::vector<GradientSquares> squares;
  squares.reserve(reports.size());
  for (const UpdateReport& report : reports) squares.push_back(report.squares);
  const double lr = lr_of(state_.step + 1);
  const UpdateResult result =
      optimizer_.apply(lr, 1.0 / static_cast<double>(sums.tokens), sums.auxiliary.tokens > 0, squares, std::isfinite(sums.loss));
  state_.position = own.after;
  state_.data_is_over = own.ends_data;
  last_update_ = {.loss = result.is_finite ? sums.loss : 0, .tokens = sums.tokens, .lr = lr};
  begin_step(sums.tokens);
  count(sums, result, state_.step);
  return own.ends_epoch;
}

/// Computes this rank's batches of an update. With several ranks it sends its gradients in any case, as others wait for them: what went
/// wrong is in the report.
UpdateReport Trainer::compute_own(OwnBatches& own) {
  const Stopwatch busy;
  UpdateReport report;
  std::vector<UnreadSums> sums;
  try {
    if (failure_) std::rethrow_exception(failure_);
    report.is_interrupted = hooks_.is_interrupted();
    if (!report.is_interrupted) {
      own = next_batches();
      if (own.batches.empty() && data_.is_over()) state_.data_is_over = true;  // there is nothing to do
      const bool is_whole = !data_.is_interrupted() && (!own.batches.empty() || !group_.is_alone());
      report.is_interrupted = !is_whole || !accumulate_gradients(own, sums);
    }
  } catch (const LostRankError&) {
    throw;
  } catch (...) {
    if (group_.is_alone()) throw;
    failure_ = std::current_exception();
  }
  if (!group_.is_alone()) report.failure = told_of(group_, failure_);
  report.busy_seconds = busy.seconds();
  if (!group_.is_alone() || !report.is_interrupted)
    report.squares =
        optimizer_.sum_gradients(std::any_of(sums.begin(), sums.end(), [](const auto& one) { return one.losses().has_auxiliary(); }));
  for (const UnreadSums& one : sums) report.batches.push_back(one.read());  // not earlier, which would wait for the GPU
  report.hours = hours();
  return report;
}

/// Returns the reports of all ranks. Throws what any of them has thrown.
std::vector<UpdateReport> Trainer::agree(UpdateReport own) {
  std::vector<UpdateReport> reports;
  if (group_.is_alone()) {
    reports.push_back(std::move(own));
    return reports;
  }
  std::vector<std::string> failures;
  for (const std::string& bytes : group_.gather_to_all(own.bytes())) {
    reports.push_back(UpdateReport::of_bytes(bytes));
    failures.push_back(reports.back().failure);
  }
  throw_first(group_, failures, std::exchange(failure_, {}));
  return reports;
}

/// Adds up the batches in their order, which is that of one process.
Trainer::UpdateSums Trainer::sum_of(const std::vector<UpdateReport>& reports) {
  std::vector<BatchSums> batches;
  for (const UpdateReport& report : reports) batches.insert(batches.end(), report.batches.begin(), report.batches.end());
  std::stable_sort(batches.begin(), batches.end(), [](const BatchSums& a, const BatchSums& b) { return a.batch < b.batch; });
  UpdateSums sums;
  for (const BatchSums& batch : batches) {
    sums.loss += batch.loss;
    sums.nll += batch.nll;
    sums.penalty += batch.penalty;
    sums.correct += batch.correct;
    sums.tokens += batch.tokens;
    if (batch.has_auxiliary) sums.auxiliary.tokens += batch.tokens;
    for (const auto& [name, sum] : batch.auxiliary) sums.auxiliary.values[name] += sum;
  }
  return sums;
}

void Trainer::note_waits(const std::vector<UpdateReport>& reports) {
  const auto [fastest, slowest] = std::minmax_element(
      reports.begin(), reports.end(), [](const UpdateReport& a, const UpdateReport& b) { return a.busy_seconds < b.busy_seconds; });
  rank_wait_seconds_ += slowest->busy_seconds - fastest->busy_seconds;
}

Trainer::OwnBatches Trainer::next_batches() {
  OwnBatches own;
  last_batches_.clear();
  for (int64_t i = 0; i < state_.batches_per_update && !data_.is_over(); ++i) {
    if (BatchPtr batch = data_.next()) {
      last_batches_.push_back(batch);
      own.batches.emplace_back(i, std::move(batch));
    }
    own.ends_epoch |= data_.at_epoch_end();
  }
  own.after = data_.position();
  own.ends_data = data_.is_over();
  return own;
}

/// Sums the gradients of this rank's batches; where one does not fit the memory, it is split, and all begin anew, unless gradients have
/// left already. Returns false if it was interrupted.
bool Trainer::accumulate_gradients(const OwnBatches& own, std::vector<UnreadSums>& sums) {
  std::vector<std::pair<int64_t, BatchPtr>> batches = own.batches;
  for (size_t i = 0; i < batches.size();) {
    if (i > 0 && hooks_.is_interrupted()) return false;
    try {
      optimizer_.expect_last_backward(i + 1 == batches.size());
      sums.push_back(add_gradients(batches[i].first, *batches[i].second));
      ++i;
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
      const bool begins_anew = !optimizer_.has_sent_gradients();  // else the halves of this last batch count for what has not left
      if (begins_anew) optimizer_.clear_gradients();
      split(batches, i);
      if (!begins_anew) continue;
      sums.clear();
      i = 0;
    }
  }
  return true;
}

UnreadSums Trainer::add_gradients(int64_t number, const Batch& batch) {
  const ForwardContext context{.training = true, .seed = seed_, .step = state_.step + 1};
  LossSums losses = loss_(batch, context);
  {
    const TimedBackward timed;
    losses.backward();
  }
  return {number, std::move(losses)};
}

void Trainer::split(std::vector<std::pair<int64_t, BatchPtr>>& batches, size_t failed) {
  if (const at::Device device = optimizer_.device(); !device.is_cpu())  // libraries for products on a GPU allocate memory of their own
    c10::getDeviceAllocator(device.type())->emptyCache();
  const auto [number, whole] = batches[failed];
  const Batch& batch = *whole;
  const std::string size = std::to_string(batch.src_tokens()) + " source and " + std::to_string(batch.tgt_tokens()) + " target tokens";
  const std::string begin = "out of memory at step " + std::to_string(state_.step + 1);
  if (batch.tgt_shape->num_sentences() < 2) {
    throw MachineError(begin + " with a single sentence of " + size + ": lower data.max_length or use a smaller model");
  }
  const std::string where = group_.is_alone() ? "" : " on " + name_of_rank(group_);
  hooks_.warn(begin + where + ": a batch of " + size +
              " is split in two and repeated. If this comes often, lower train.batch_tokens and raise train.update_freq");
  auto [first, second] = split_batch(batch);
  batches[failed] = {number, std::move(first)};
  batches.insert(batches.begin() + static_cast<std::ptrdiff_t>(failed) + 1, {number, std::move(second)});
}

/// Counts what is known before an update's outcome.
void Trainer::begin_step(int64_t tokens) {
  ++state_.step;
  is_saved_ = false;
  scores_.clear();
  state_.tgt_tokens += tokens;
  timed_tokens_ += tokens;
}

/// Counts the outcome of the update of a step.
void Trainer::count(const UpdateSums& sums, const UpdateResult& update, int64_t step) {
  state_.optimizer_updates = optimizer_.num_updates();
  state_.auxiliary_updates = optimizer_.num_auxiliary_updates();
  if (update.is_finite) {
    state_.skipped_in_a_row = 0;
    LogWindow& window = state_.window;
    window.loss += sums.loss;
    window.nll += sums.nll;
    window.penalty += sums.penalty;
    window.correct += sums.correct;
    window.tokens += sums.tokens;
    window.updates += 1;
    window.gradient_norm += update.gradient_norm;
    if (sums.auxiliary.tokens > 0) count_auxiliary(sums.auxiliary, update);
    return;
  }
  ++state_.skipped_updates;
  ++state_.skipped_in_a_row;
  const bool is_of_loss = std::isfinite(update.gradient_norm) && std::isfinite(update.auxiliary_gradient_norm);
  const std::string what = is_of_loss ? "the loss" : "the gradient";
  warn_once(what + " of step " + std::to_string(step) + " is not finite: this update is left out (" +
            std::to_string(state_.skipped_updates) + " so far)");
  if (state_.skipped_in_a_row < options_.max_bad_updates) return;
  throw DivergedError("training has diverged: " + what + " was not finite in the last " + counted(options_.max_bad_updates, "update") +
                      ", up to step " + std::to_string(step) + ". " + kWayOutOfDivergence);
}

void Trainer::count_auxiliary(const AuxiliaryWindow& sums, const UpdateResult& update) {
  AuxiliaryWindow& window = state_.window.auxiliary;
  for (const auto& [name, sum] : sums.values) window.values[name] += sum;
  window.tokens += sums.tokens;
  window.updates += 1;
  window.gradient_norm += update.auxiliary_gradient_norm;
}

void Trainer::note_due(bool ended_epoch) {
  const auto is_due = [&](int64_t every) { return every > 0 ? state_.step % every == 0 : ended_epoch; };
  const bool ends = end().has_value();
  state_.validation_is_due = hooks_.validate && (is_due(options_.valid_every) || ends);
  state_.save_is_due = is_due(options_.save_every) || ends;
  const bool logs = state_.step % options_.log_every == 0 || ends;
  if (logs || state_.validation_is_due || state_.save_is_due) {
    const Stopwatch waiting;
    settle();
    update_seconds_ += waiting.seconds();
  }
  if (logs) log_progress();
}

void Trainer::run_due_hooks() {
  if (state_.validation_is_due && !validate()) return;  // interrupted: `finish` keeps that it is due
  const bool was_validated = !scores_.empty();
  if (state_.save_is_due || was_validated) save(state_.save_is_due);
}

void Trainer::log_progress() {
  LogWindow& window = state_.window;
  if (window.updates == 0) return;  // all were left out, each with a warning: the next line covers this time too
  const double tokens = static_cast<double>(window.tokens), updates = static_cast<double>(window.updates);
  const double waited = data_.seconds_waited() - seconds_waited_before_;
  TrainingProgress progress;
  progress.step = state_.step;
  progress.epoch = state_.position.batch > 0 ? state_.position.epoch + 1 : state_.position.epoch;
  progress.loss_per_token = window.loss / tokens;
  progress.nll_per_token = window.nll / tokens;
  progress.penalty_per_token = window.penalty / tokens;
  progress.accuracy = static_cast<double>(window.correct) / tokens;
  progress.gradient_norm = window.gradient_norm / updates;
  progress.lr = lr_of(state_.step);
  progress.tokens_per_second = static_cast<double>(timed_tokens_) / update_seconds_;
  progress.data_wait = waited / update_seconds_;
  progress.rank_wait = rank_wait_seconds_ / update_seconds_;
  progress.tokens_per_update = tokens / updates;
  progress.skipped_updates = state_.skipped_updates;
  if (const AuxiliaryWindow& auxiliary = window.auxiliary; auxiliary.updates > 0) {
    for (const auto& [name, sum] : auxiliary.values) progress.auxiliary[name] = sum / static_cast<double>(auxiliary.tokens);
    progress.auxiliary[kAuxiliaryNorm] = auxiliary.gradient_norm / static_cast<double>(auxiliary.updates);
  }
  hooks_.log(progress);
  window = {};
  update_seconds_ = 0;
  timed_tokens_ = 0;
  rank_wait_seconds_ = 0;
  seconds_waited_before_ = data_.seconds_waited();
}

/// Returns false if it was interrupted: then the validation stays due.
bool Trainer::validate() {
  const std::optional<Scores> scores = scores_of_average();
  if (!scores) return false;
  scores_ = *scores;
  const std::string deciding = score_name(options_.metric);
  const auto found = scores_.find(deciding);
  if (found == scores_.end()) throw ConfigError("train.metric is " + deciding + ", which the validation does not give");
  state_.scores.add(found->second, state_.step, options_);
  state_.validation_is_due = false;
  is_saved_ = false;
  return true;
}

/// Returns the scores of the moving average of the weights, if there is one. After an error that says
/// nothing against them, the updates are saved before it ends the run.
std::optional<Scores> Trainer::scores_of_average() {
  std::optional<Scores> scores;
  std::exception_ptr failure;
  optimizer_.swap_ema();
  bool is_sound = true;
  try {
    scores = hooks_.validate();
  } catch (const LostRankError&) {
    throw;
  } catch (const DivergedError&) {
    failure = std::current_exception();
    is_sound = false;
  } catch (...) {
    failure = std::current_exception();
  }
  optimizer_.swap_ema();
  if (!failure) return scores;
  if (is_sound) save_unvalidated();
  std::rethrow_exception(failure);
}

void Trainer::save(bool is_scheduled) {
  state_.hours = hours();
  if (is_scheduled) {
    state_.save_is_due = false;
    state_.last_saved_step = state_.step;
  }
  hooks_.save(state_, scores_, is_scheduled);
  is_saved_ = true;
}

/// Saves a checkpoint beside the schedule. A failure is a warning: the validation's error is the one to report.
void Trainer::save_unvalidated() {
  if (is_saved_) return;
  try {
    save(false);
  } catch (const std::exception& error) {
    warn_once("the validation after step " + std::to_string(state_.step) + " failed, and so did saving: " + error.what());
  }
}

/// Saves what run_due_hooks() has not and, after an interruption, a checkpoint beside the schedule.
void Trainer::finish() {
  settle();
  const bool ends_by_itself = end().has_value();
  if (ends_by_itself && state_.last_saved_step != state_.step) return save(true);
  if (!is_saved_) save(false);
}

/// Warns of what all ranks know.
void Trainer::warn_once(const std::string& text) const {
  if (group_.is_first()) hooks_.warn(text);
}

double Trainer::hours() const {
  return hours_before_ + (since_start_ ? since_start_->seconds() / 3600 : 0);
}

}  // namespace lacuna
