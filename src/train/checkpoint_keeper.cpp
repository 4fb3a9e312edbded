#include "train/checkpoint_keeper.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "config/run_files.h"
#include "ranks/stage.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Returns the checkpoints that have the score of `metric`, the best first.
std::vector<RunCheckpoint> by_deciding_score(const std::vector<RunCheckpoint>& checkpoints, const TrainOptions& options) {
  return by_score(checkpoints, score_name(options.metric), lower_is_better(options.metric));
}

/// Returns copies on the CPU, which share no memory with the originals.
NamedTensors copied(NamedTensors tensors) {
  for (auto& [name, tensor] : tensors) tensor = tensor.to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  return tensors;
}

/// Returns how many scheduled checkpoints are kept whatever their scores.
int64_t num_last(const TrainOptions& options) {
  return std::max(options.keep_last, options.average_last);
}

std::string mebibytes(uint64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

/// Returns the steps of checkpoints that training can go back to: of the newest before an interruption and, unless its weights have proved
/// good, of the one before that, if it still has trainer state.
std::set<int64_t> steps_to_go_back_to(const std::vector<RunCheckpoint>& checkpoints, bool is_proved) {
  std::set<int64_t> steps;
  for (auto one = checkpoints.rbegin(); one != checkpoints.rend() && steps.size() < (is_proved ? 1 : 2); ++one)
    if (!one->is_of_interruption() && (steps.empty() || has_trainer_state(one->path))) steps.insert(one->step);
  if (steps.empty()) steps.insert(checkpoints.back().step);
  return steps;
}

}  // namespace

std::set<int64_t> steps_to_keep(const std::vector<RunCheckpoint>& checkpoints, const TrainOptions& options) {
  std::set<int64_t> kept;
  if (checkpoints.empty()) return kept;
  kept.insert(checkpoints.back().step);
  int64_t last = num_last(options), best = options.keep_best;
  for (auto checkpoint = checkpoints.rbegin(); checkpoint != checkpoints.rend(); ++checkpoint)
    if (checkpoint->info.is_scheduled && last-- > 0) kept.insert(checkpoint->step);
  for (const RunCheckpoint& checkpoint : by_deciding_score(checkpoints, options))
    if (best-- > 0) kept.insert(checkpoint.step);
  return kept;
}

CheckpointKeeper::CheckpointKeeper(std::string run, const TrainOptions& options, std::string config_yaml, Vocabularies vocabularies,
                                   const Optimizer& optimizer, std::function<void()> require_place, Group& group)
    : run_(std::move(run)),
      options_(options),
      config_yaml_(std::move(config_yaml)),
      vocabularies_(std::move(vocabularies)),
      optimizer_(optimizer),
      require_place_(std::move(require_place)),
      group_(group) {}

CheckpointKeeper::~CheckpointKeeper() {
  try {
    finish_writing(/*goes_on=*/true);
  } catch (const std::exception& error) {
    write_log_line(LogLevel::kError, error.what());
  }
}

void CheckpointKeeper::save(const TrainingState& state, const Scores& scores, bool is_scheduled) {
  if (const std::string found = optimizer_.not_finite(); !found.empty())
    throw DivergedError("training has diverged: after step " + std::to_string(state.step) + ", " + found + ". " + kWayOutOfDivergence);
  if (unproved_ && state.skipped_in_a_row > 0) {  // the same weights
    if (!is_scheduled && scores.empty()) return;
    if (unproved_->contents.info.scores.empty()) unproved_.reset();
  }
  on_all_ranks(group_, [&] { finish_writing(/*goes_on=*/state.skipped_in_a_row > 0); });
  const NamedTensors average = optimizer_.ema_weights(), moments = optimizer_.state();
  at_first(group_, [&] { keep(state, scores, is_scheduled, average, moments); });
  if (group_.is_first()) return;
  unproved_.emplace();
  unproved_->contents.info.scores = scores;
}

/// Copies what a checkpoint of `state` holds.
void CheckpointKeeper::keep(const TrainingState& state, const Scores& scores, bool is_scheduled, const NamedTensors& average,
                            const NamedTensors& moments) {
  const std::string path = checkpoint_path(run_, state.step);
  const bool keeps_scores = scores.empty() && is_checkpoint(path);  // a resumed run that ends at the step where it stopped
  CheckpointContents contents;
  contents.weights = copied(optimizer_.weights());
  if (optimizer_.has_ema()) contents.ema_weights = copied(average);
  contents.config_yaml = config_yaml_;
  contents.vocabularies = vocabularies_;
  contents.info = {.step = state.step,
                   .scores = keeps_scores ? read_checkpoint_info(path).scores : scores,
                   .uses_ema = optimizer_.has_ema(),
                   .is_scheduled = is_scheduled};
  contents.trainer_tensors = copied(moments);
  contents.trainer_json = state.to_json();
  unproved_ = {path, std::move(contents)};
}

void CheckpointKeeper::confirm() {
  write(/*is_proved=*/true);
}

/// Has a thread write what was saved last.
void CheckpointKeeper::write(bool is_proved) {
  if (!unproved_) return;
  if (!group_.is_first()) return unproved_.reset();
  if (writing_.valid()) writing_.get();
  writing_ = std::async(std::launch::async, [this, is_proved, saved = *std::exchange(unproved_, {})] {
    require_place_();
    try {
      save_checkpoint(saved.path, saved.contents, require_place_);
    } catch (const MachineError&) {
      require_place_();  // a folder that is gone is named as such
      throw;
    }
    update_folder(is_proved);
  });
}

void CheckpointKeeper::wait(bool goes_on) {
  on_all_ranks(group_, [this, goes_on] {
    finish_writing(goes_on);
    if (goes_on || !group_.is_first()) return;
    require_place_();
    update_folder(/*is_proved=*/true);
  });
}

void CheckpointKeeper::finish_writing(bool goes_on) {
  write(/*is_proved=*/!goes_on);
  if (writing_.valid()) writing_.get();
}

void CheckpointKeeper::check() {
  if (writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) writing_.get();
}

void CheckpointKeeper::tidy() {
  finish_writing(/*goes_on=*/true);
  update_folder(/*is_proved=*/false);
}

void CheckpointKeeper::update_folder(bool is_proved) const {
  remove_leftovers(run_);
  const std::vector<RunCheckpoint> checkpoints = checkpoints_of(run_, [](const std::string& damage) {
    write_log_line(LogLevel::kWarning, damage + ". It is left as it is, and counts neither among the last nor among the best");
  });
  if (checkpoints.empty()) return;
  std::set<int64_t> kept = steps_to_keep(checkpoints, options_);
  const std::set<int64_t> to_go_back_to = steps_to_go_back_to(checkpoints, is_proved);
  kept.insert(to_go_back_to.begin(), to_go_back_to.end());
  link_checkpoint(run_, run_files::kLast, checkpoints.back().step);
  std::vector<RunCheckpoint> best = by_deciding_score(checkpoints, options_);
  std::erase_if(best,
                [&](const RunCheckpoint& checkpoint) { return !kept.contains(checkpoint.step); });  // these are deleted, as keep_best is 0
  if (!best.empty())
    link_checkpoint(run_, run_files::kBest, best.front().step);
  else if (const fs::path link = fs::path(run_) / run_files::kBest; fs::is_symlink(link))
    fs::remove(link);
  for (const RunCheckpoint& checkpoint : checkpoints) {
    if (!kept.contains(checkpoint.step))
      remove_folder(checkpoint.path);
    else if (checkpoint.step != checkpoints.back().step && !to_go_back_to.contains(checkpoint.step))
      drop_trainer_state(checkpoint.path);
  }
}

uint64_t CheckpointKeeper::weight_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : optimizer_.weights()) bytes += tensor.nbytes();
  return bytes;
}

uint64_t CheckpointKeeper::run_bytes() const {
  const auto others = static_cast<uint64_t>(num_last(options_) - 1 + options_.keep_best);
  const uint64_t copies = others * (optimizer_.has_ema() ? 2 : 1) + (options_.average_last > 0 ? 1 : 0);
  return checkpoint_bytes() + copies * weight_bytes();
}

void CheckpointKeeper::require_disk_room(uint64_t to_be_freed) const {
  const uint64_t needed = 2 * checkpoint_bytes(), available = free_disk_space(run_);
  if (available + to_be_freed >= needed) return;
  const std::string more = to_be_freed > 0 ? ", and " + mebibytes(to_be_freed) + " more once the old run is removed" : "";
  throw MachineError("the disk of " + run_ + " has " + mebibytes(available) + " free" + more + "; two checkpoints need " +
                     mebibytes(needed) + ". Make room, or set `run` to a folder on another disk");
}

}  // namespace lacuna
