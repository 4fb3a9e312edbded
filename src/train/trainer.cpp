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
#include "model/precision.h"

namespace lacuna {
namespace {

/// Returns an asynchronous copy on the CPU, complete once the optimizer has waited for the gradient's norm.
Tensor copied_to_cpu(const Tensor& x) {
  return x.defined() ? x.detach().to(x.options().device(at::kCPU), /*non_blocking=*/true) : x;
}

}  // namespace

std::optional<TrainingEnd> end_of(const TrainingState& state, double hours, const TrainOptions& options) {
  if (state.validation_is_due || state.save_is_due) return {};
  if (options.max_steps > 0 && state.step >= options.max_steps) return TrainingEnd::kMaxSteps;
  if (options.max_epochs > 0 && state.position.epoch >= options.max_epochs) return TrainingEnd::kMaxEpochs;
  if (options.max_hours > 0 && hours >= options.max_hours) return TrainingEnd::kMaxHours;
  const int64_t patience = options.patience.value_or(0);
  const bool may_stop = patience > 0 && state.step >= options.min_steps;
  if (may_stop && state.scores.since_best >= patience) return TrainingEnd::kNoImprovement;
  return {};
}

LossFunction transformer_loss(std::shared_ptr<Transformer> model, const TrainOptions& options, const std::string& device) {
  return [model = std::move(model), smoothing = options.label_smoothing, precision = factor_precision(options.precision, device),
          where = at::Device(device)](const Batch& batch, ForwardContext context) {
    if (context.training) context.precision = precision;
    return model->loss(ragged_of(batch.src, batch.src_shape, where), ragged_of(batch.tgt, batch.tgt_shape, where), smoothing, context);
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
      hours_before_(state_.hours),
      hours_at_update_(state_.hours) {
  if (!hooks_.validate) state_.validation_is_due = false;  // a run may go on without
}

TrainingEnd Trainer::run() {
  since_start_.emplace();
  seconds_waited_before_ = data_.seconds_waited();
  run_due_hooks();  // left over from an interruption
  while (!end() && !was_interrupted()) {
    const Stopwatch one;
    const bool ended_epoch = update();
    last_update_.seconds = one.seconds();
    update_seconds_ += last_update_.seconds;
    hooks_.on_update(state_, last_update_);
    note_due(ended_epoch);
    run_due_hooks();
  }
  finish();
  return end().value_or(TrainingEnd::kInterrupted);
}

bool Trainer::update() {
  UpdateSums sums = accumulate_gradients();
  const double lr = lr_of(state_.step + 1);
  const auto is_loss_finite = [&] {
    read(sums);  // not earlier, which would wait for the GPU
    return std::isfinite(sums.loss);
  };
  const UpdateResult result = optimizer_.update(lr, 1.0 / static_cast<double>(sums.tokens), sums.auxiliary.tokens > 0, is_loss_finite);
  read(sums);
  last_update_ = {.loss = result.is_finite ? sums.loss : 0, .tokens = sums.tokens, .lr = lr};
  count(sums, result);
  return sums.ended_epoch;
}

/// Sums the gradients of one update's batches; a batch that does not fit the memory is split, and the update restarted.
Trainer::UpdateSums Trainer::accumulate_gradients() {
  UpdateSums sums;
  std::vector<BatchPtr> batches = last_batches_ = next_batches(sums);
  const UpdateSums none = sums;
  for (size_t i = 0; i < batches.size();) {
    try {
      add_gradients(*batches[i], sums);
      ++i;
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
      make_room(batches, i);
      sums = none;
      i = 0;
    }
  }
  return sums;
}

std::vector<BatchPtr> Trainer::next_batches(UpdateSums& sums) {
  std::vector<BatchPtr> batches;
  for (int64_t i = 0; i < options_.update_freq; ++i) {
    batches.push_back(data_.next());
    sums.ended_epoch |= data_.at_epoch_end();
  }
  state_.position = data_.position();
  return batches;
}

void Trainer::add_gradients(const Batch& batch, UpdateSums& sums) {
  const ForwardContext context{.training = true, .seed = seed_, .step = state_.step + 1};
  LossSums losses = loss_(batch, context);
  {
    const TimedBackward timed;
    losses.backward();
  }
  sums.tokens += losses.tokens;
  if (losses.has_auxiliary()) sums.auxiliary.tokens += losses.tokens;
  for (Tensor* sum : {&losses.loss, &losses.nll, &losses.correct, &losses.penalty}) *sum = copied_to_cpu(*sum);
  for (auto& [name, sum] : losses.auxiliary.values) sum = copied_to_cpu(sum);
  losses.auxiliary.objective = Tensor();
  sums.unread.push_back(std::move(losses));
}

void Trainer::read(UpdateSums& sums) {
  for (const LossSums& losses : sums.unread) {
    sums.loss += losses.loss.item<double>();
    sums.nll += losses.nll.item<double>();
    if (losses.penalty.defined()) sums.penalty += losses.penalty.item<double>();
    sums.correct += losses.correct.item<int64_t>();
    for (const auto& [name, sum] : losses.auxiliary.values) sums.auxiliary.values[name] += sum.item<double>();
  }
  sums.unread.clear();
}

void Trainer::make_room(std::vector<BatchPtr>& batches, size_t failed) {
  optimizer_.clear_gradients();
  if (const at::Device device = optimizer_.device(); !device.is_cpu())  // libraries for products on a GPU allocate memory of their own
    c10::getDeviceAllocator(device.type())->emptyCache();
  const Batch& batch = *batches[failed];
  const std::string size = std::to_string(batch.src_tokens()) + " source and " + std::to_string(batch.tgt_tokens()) + " target tokens";
  if (batch.tgt_shape->num_sentences() < 2) {
    throw MachineError("out of memory at step " + std::to_string(state_.step + 1) + " with a single sentence of " + size +
                       ": lower data.max_length or use a smaller model");
  }
  hooks_.warn("out of memory at step " + std::to_string(state_.step + 1) + ": a batch of " + size +
              " is split in two and repeated. If this comes often, lower train.batch_tokens and raise train.update_freq");
  auto [first, second] = split_batch(batch);
  batches[failed] = std::move(first);
  batches.insert(batches.begin() + static_cast<std::ptrdiff_t>(failed) + 1, std::move(second));
}

void Trainer::count(const UpdateSums& sums, const UpdateResult& update) {
  ++state_.step;
  is_saved_ = false;
  scores_.clear();
  state_.optimizer_updates = optimizer_.num_updates();
  state_.auxiliary_updates = optimizer_.num_auxiliary_updates();
  state_.tgt_tokens += sums.tokens;
  timed_tokens_ += sums.tokens;
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
  hooks_.warn(what + " of step " + std::to_string(state_.step) + " is not finite: this update is left out (" +
              std::to_string(state_.skipped_updates) + " so far)");
  if (state_.skipped_in_a_row < options_.max_bad_updates) return;
  throw DivergedError("training has diverged: " + what + " was not finite in the last " + counted(options_.max_bad_updates, "update") +
                      ", up to step " + std::to_string(state_.step) + ". " + kWayOutOfDivergence);
}

void Trainer::count_auxiliary(const AuxiliaryWindow& sums, const UpdateResult& update) {
  AuxiliaryWindow& window = state_.window.auxiliary;
  for (const auto& [name, sum] : sums.values) window.values[name] += sum;
  window.tokens += sums.tokens;
  window.updates += 1;
  window.gradient_norm += update.auxiliary_gradient_norm;
}

void Trainer::note_due(bool ended_epoch) {
  hours_at_update_ = hours();
  const auto is_due = [&](int64_t every) { return every > 0 ? state_.step % every == 0 : ended_epoch; };
  const bool ends = end().has_value();
  state_.validation_is_due = hooks_.validate && (is_due(options_.valid_every) || ends);
  state_.save_is_due = is_due(options_.save_every) || ends;
  if (state_.step % options_.log_every == 0 || ends) log_progress();
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
    hooks_.warn("the validation after step " + std::to_string(state_.step) + " failed, and so did saving: " + error.what());
  }
}

/// Saves what run_due_hooks() has not and, after an interruption, a checkpoint beside the schedule.
void Trainer::finish() {
  const bool ends_by_itself = end().has_value();
  if (ends_by_itself && state_.last_saved_step != state_.step) return save(true);
  if (!is_saved_) save(false);
}

double Trainer::hours() const {
  return hours_before_ + (since_start_ ? since_start_->seconds() / 3600 : 0);
}

}  // namespace lacuna
