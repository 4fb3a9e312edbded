#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/batch.h"
#include "model/transformer.h"
#include "train/learning_rate.h"
#include "train/optimizer.h"
#include "train/split_batch.h"
#include "train/training_state.h"

namespace lacuna {

/// What the mask passes (attention type calibrated) of a line of the log came to.
struct MaskProgress {
  double loss_per_token = 0;  ///< what the mask models minimise
  double perturbed_loss = 0;  ///< with perturbed weights: label-smoothed, nats per target token
  double mean = 0;            ///< of the mask: 1 = nothing is perturbed
  double gradient_norm = 0;   ///< of the mask models, before clipping
};

/// A line of the training log: means over the updates since the last one.
struct TrainingProgress {
  int64_t step = 0;
  int64_t epoch = 0;                       ///< 1 for the first
  double loss_per_token = 0;               ///< label-smoothed, nats per target token, and the penalty: what is minimised
  double nll_per_token = 0;                ///< unsmoothed
  double penalty_per_token = 0;            ///< what layers added to the loss
  double accuracy = 0;                     ///< share of target tokens predicted right
  double gradient_norm = 0;                ///< before clipping
  double lr = 0;                           ///< of the last update
  double tokens_per_second = 0;            ///< target tokens, without validating and saving
  double data_wait = 0;                    ///< share of the time spent waiting for batches
  double tokens_per_update = 0;            ///< target tokens
  int64_t skipped_updates = 0;             ///< of the whole run
  std::optional<MaskProgress> masks = {};  ///< if there were mask passes
};

using Scores = std::map<std::string, double>;

/// What the trainer is handed: it knows nothing of files, searching or scoring.
struct TrainerHooks {
  std::function<void(const TrainingProgress&)> log;
  /// Scores of the present weights, "loss", "bleu", ...; nothing if an interruption came. Not set: there is nothing to validate on.
  /// What it throws ends the run, after a checkpoint in which this validation is still due.
  std::function<std::optional<Scores>()> validate;
  /// Keeps the present weights and state.
  std::function<void(const TrainingState&, const Scores&, bool is_scheduled)> save;
  /// True once the user or the system asked the program to end.
  std::function<bool()> is_interrupted = [] { return false; };
  /// After each update: a progress bar's moment.
  std::function<void(const TrainingState&)> on_update = [](const TrainingState&) {};
  /// Something happened that a person should know.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

/// What is left to do where training has diverged: the end of an error message.
inline constexpr char kWayOutOfDivergence[] =
    "Lower train.lr, raise train.warmup_steps or clip gradients more (train.clip_norm), and start anew or from an earlier checkpoint "
    "(train.init_from)";

enum class TrainingEnd { kMaxSteps, kMaxEpochs, kMaxHours, kNoImprovement, kInterrupted };

/// Why there is nothing (more) to do for a run that stands at `state` after so many hours of training, if so.
std::optional<TrainingEnd> end_of(const TrainingState& state, double hours, const TrainOptions& options);

/// Loss of a batch with a graph behind it.
using LossFunction = std::function<LossSums(const Batch&, const ForwardContext&)>;

/// The training loop. Every update is a pure function of weights, optimizer state and TrainingState, so that a run which stopped at any
/// update goes on bit for bit.
class Trainer {
 public:
  /// `data` stands at `state.position`.
  Trainer(const TrainOptions& options, uint64_t seed, LossFunction loss, BatchStream& data, Optimizer& optimizer,
          LearningRate learning_rate, TrainerHooks hooks, TrainingState state);

  /// Trains until an end is reached. Throws MachineError if one sentence does not fit the memory, or if the gradient has not been finite
  /// for many updates in a row.
  TrainingEnd run();
  /// One update and nothing of what is due after it: no hook but `warn` is called. True if it ended an epoch.
  bool update();
  /// Why there is nothing (more) to do, if so.
  std::optional<TrainingEnd> end() const { return end_of(state_, hours_at_update_, options_); }
  const TrainingState& state() const { return state_; }

 private:
  struct UpdateSums {
    double loss = 0, nll = 0, penalty = 0;
    int64_t correct = 0, tokens = 0;
    MaskWindow masks;
    bool ended_epoch = false;
    std::vector<LossSums> unread;  ///< of batches whose tokens are counted; on their way from a GPU
  };

  UpdateSums accumulate_gradients();
  std::vector<BatchPtr> next_batches(UpdateSums& sums);
  void add_gradients(const Batch& batch, UpdateSums& sums);
  static void read(UpdateSums& sums);
  void make_room(std::vector<BatchPtr>& batches, size_t failed);
  void count(const UpdateSums& sums, const UpdateResult& update);
  void count_masks(const MaskWindow& sums, const UpdateResult& update);
  void note_due(bool ended_epoch);
  void run_due_hooks();
  void log_progress();
  bool validate();
  std::optional<Scores> scores_of_average();
  void save(bool is_scheduled);
  void save_unvalidated();
  void finish();
  bool was_interrupted() const { return hooks_.is_interrupted(); }
  double hours() const;

  TrainOptions options_;
  uint64_t seed_;
  LossFunction loss_;
  BatchStream& data_;
  Optimizer& optimizer_;
  LearningRate learning_rate_;
  TrainerHooks hooks_;
  TrainingState state_;

  Scores scores_;                     ///< of the validation after the present step
  double hours_before_ = 0;           ///< of earlier starts
  double hours_at_update_ = 0;        ///< of all starts, at the last update: what max_hours looks at, so that an end is validated
  double start_seconds_ = 0;          ///< of this one
  double update_seconds_ = 0;         ///< in updates since the last line of the log
  int64_t timed_tokens_ = 0;          ///< in the same
  double seconds_waited_before_ = 0;  ///< for data, until the last line of the log
  bool is_saved_ = true;              ///< the present step
};

}  // namespace lacuna
