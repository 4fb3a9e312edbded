#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/stopwatch.h"
#include "config/options.h"
#include "data/batch.h"
#include "model/transformer.h"
#include "train/learning_rate.h"
#include "train/optimizer.h"
#include "train/training_state.h"
#include "train/unread_sums.h"
#include "train/update_report.h"

namespace lacuna {

/// The norm among TrainingProgress::auxiliary.
inline constexpr char kAuxiliaryNorm[] = "mask_gradient_norm";

/// A line of the training log: means over the updates since the last one.
struct TrainingProgress {
  int64_t step = 0;
  int64_t epoch = 0;             ///< 1 for the first
  double loss_per_token = 0;     ///< label-smoothed loss and penalty, nats per target token: what is minimized
  double nll_per_token = 0;      ///< unsmoothed loss, nats per target token
  double penalty_per_token = 0;  ///< what layers add to the loss, nats per target token
  double accuracy = 0;           ///< share of target tokens predicted right
  double gradient_norm = 0;      ///< of the main group, before clipping
  double lr = 0;                 ///< learning rate of the last update
  double tokens_per_second = 0;  ///< target tokens a second, without validation and saving
  double data_wait = 0;          ///< share of the time that this rank has spent waiting for batches
  double rank_wait = 0;  ///< share of the time by which the slowest rank's batches took longer than the fastest one's; 0 with one rank
  double tokens_per_update = 0;  ///< target tokens an update
  int64_t skipped_updates = 0;   ///< updates left out in the whole run
  /// The auxiliary loss's values a target token, and the norm of its gradient before clipping, by their names in
  /// metrics.jsonl; empty if it was not due.
  std::map<std::string, double> auxiliary = {};
};

using Scores = std::map<std::string, double>;

/// The last update whose outcome is known, for a progress bar.
struct UpdateProgress {
  double loss = 0;     ///< label-smoothed, nats, summed over the target tokens; 0 if the update was left out
  int64_t tokens = 0;  ///< target tokens
  double seconds = 0;
  double lr = 0;
};

/// Callbacks of the trainer, which itself knows nothing of files, search or scoring. All ranks call `log`, `validate`, `save` and
/// `on_update` after the same updates, with the same numbers but for times; the first three must succeed or throw on all ranks alike.
struct TrainerHooks {
  std::function<void(const TrainingProgress&)> log;
  /// Returns the scores of the current weights, "loss", "bleu", ...; nothing if it was interrupted. Not set = there is
  /// no validation set. An exception ends the run, after a checkpoint in which this validation is still due.
  std::function<std::optional<Scores>()> validate;
  /// Saves the current weights and state.
  std::function<void(const TrainingState&, const Scores&, bool is_scheduled)> save;
  /// Returns true once the user or the system has asked the program to end. Asked between batches; one rank is enough.
  std::function<bool()> is_interrupted = [] { return false; };
  /// Called after each update, for a progress bar. Where it throws on one rank, all ranks end with the next update.
  std::function<void(const TrainingState&, const UpdateProgress&)> on_update = [](const TrainingState&, const UpdateProgress&) {};
  /// Called with a warning for the user: on the rank that it is about, or if it is about all, on rank 0.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

/// Advice for diverged training: the end of an error message.
inline constexpr char kWayOutOfDivergence[] =
    "Lower train.lr, raise train.warmup_steps or clip gradients more (train.clip_norm), and start anew or from an earlier checkpoint "
    "(train.init_from)";

/// Training came to numbers that are none: weights, loss or gradients that stay NaN or infinite.
class DivergedError : public MachineError {
 public:
  using MachineError::MachineError;
};

enum class TrainingEnd { kDataOver, kMaxSteps, kMaxEpochs, kMaxHours, kNoImprovement, kInterrupted };

/// Returns why a run at `state` has ended after `hours` of training; nothing if it has not.
std::optional<TrainingEnd> end_of(const TrainingState& state, double hours, const TrainOptions& options);

/// The loss of a batch, with its autograd graph.
using LossFunction = std::function<LossSums(const Batch&, const ForwardContext&)>;

/// Returns the loss function of a Transformer, which copies a batch to `device`. Label smoothing, precision (model/precision.h) and guided
/// alignment are those of `options`; validation is in fp32 always, and not guided.
LossFunction transformer_loss(std::shared_ptr<Transformer> model, const TrainOptions& options, const std::string& device);

/// Returns the parameters: the group `main`, and `auxiliary` of those that an auxiliary loss trains, if there is one.
std::vector<ParameterGroup> trained_parameters(const Transformer& model);

/// The training loop. Every update is a pure function of weights, optimizer state and TrainingState, so that a run
/// which stopped at any update resumes bit for bit.
///
/// An update is `state.batches_per_update` consecutive batches of the one stream. Batch i of it goes to rank i modulo the number of ranks
/// (the optimizer's group), and every sum is in the order of batches or of ranks: n ranks with a batch each get the bits of one process
/// with n batches. After its batches each rank tells all others what it has (UpdateReport), and whatever is decided then follows from these
/// reports, so that all ranks decide alike.
class Trainer {
 public:
  /// `data` must be at `state.position`, and give the batches of this rank. References must outlive the trainer. Where
  /// `state.batches_per_update` is unknown, it becomes the number of ranks times train.update_freq.
  Trainer(const TrainOptions& options, uint64_t seed, LossFunction loss, BatchStream& data, Optimizer& optimizer,
          LearningRate learning_rate, TrainerHooks hooks, TrainingState state);

  /// Trains until an end. Throws MachineError if one sentence does not fit the memory, DivergedError after train.max_bad_updates in a row,
  /// OtherRankError for whatever another rank throws.
  TrainingEnd run();
  /// Makes one update, without what is due after it: no hook but `warn` and `is_interrupted` is called. Returns true if it ended an epoch;
  /// nothing if it was interrupted, and so has changed nothing. On a GPU it may return before the update is made: what is counted of it
  /// then comes with the next update, or with settle().
  std::optional<bool> update();
  /// Waits for a GPU, and counts the update that it has made last. Throws DivergedError as run() does: that update is the last one then.
  void settle();
  /// Returns why training has ended; nothing if it has not.
  std::optional<TrainingEnd> end() const { return end_of(state_, hours_at_update_, options_); }
  const TrainingState& state() const { return state_; }
  /// Returns this rank's batches of the last update.
  const std::vector<BatchPtr>& last_batches() const { return last_batches_; }

 private:
  /// The batches of an update that are this rank's, by their numbers in it, and where the stream stands after the update.
  struct OwnBatches {
    std::vector<std::pair<int64_t, BatchPtr>> batches;
    DataPosition after;
    bool ends_epoch = false, ends_data = false;
  };
  /// An update that was given to a GPU, and what is counted once its outcome is known.
  struct UnknownUpdate {
    QueuedUpdate queued;
    std::vector<UnreadSums> sums;
    std::vector<BatchPtr> batches;  ///< this rank's
    int64_t step;
    double lr;
  };
  /// Sums of all ranks' batches.
  struct UpdateSums {
    double loss = 0, nll = 0, penalty = 0;
    int64_t correct = 0, tokens = 0;
    AuxiliaryWindow auxiliary;
  };

  UpdateReport compute_own(OwnBatches& own);
  OwnBatches next_batches();
  bool accumulate_gradients(const OwnBatches& own, std::vector<UnreadSums>& sums);
  UnreadSums add_gradients(int64_t number, const Batch& batch);
  void split(std::vector<std::pair<int64_t, BatchPtr>>& batches, size_t failed);
  std::vector<UpdateReport> agree(UpdateReport own);
  static UpdateSums sum_of(const std::vector<UpdateReport>& reports);
  void note_waits(const std::vector<UpdateReport>& reports);
  void show_progress();
  std::optional<bool> queue_update();
  void begin_step(int64_t tokens);
  void count(const UpdateSums& sums, const UpdateResult& update, int64_t step);
  void count_auxiliary(const AuxiliaryWindow& sums, const UpdateResult& update);
  void note_due(bool ended_epoch);
  void run_due_hooks();
  void log_progress();
  bool validate();
  std::optional<Scores> scores_of_average();
  void save(bool is_scheduled);
  void save_unvalidated();
  void finish();
  double lr_of(int64_t step) const { return state_.lr_factor * learning_rate_.at(step, state_.scores.decreases); }
  void warn_once(const std::string& text) const;
  double hours() const;

  TrainOptions options_;
  uint64_t seed_;
  LossFunction loss_;
  BatchStream& data_;
  Optimizer& optimizer_;
  LearningRate learning_rate_;
  TrainerHooks hooks_;
  TrainingState state_;
  Group& group_;

  UpdateProgress last_update_;
  std::vector<BatchPtr> last_batches_;
  std::optional<UnknownUpdate> unknown_;  ///< the last update, where a GPU makes it
  std::exception_ptr failure_;            ///< of this rank after its last update, which others do not know yet
  Scores scores_;                         ///< of the validation after the current step
  double hours_before_ = 0;               ///< hours of earlier starts
  double hours_at_update_ = 0;            ///< hours of all starts at the last update, for max_hours
  std::optional<Stopwatch> since_start_;  ///< since run() began
  double update_seconds_ = 0;             ///< time spent in updates since the last line of the log
  int64_t timed_tokens_ = 0;              ///< target tokens of these updates
  double rank_wait_seconds_ = 0;          ///< how much longer the slowest rank's batches took than the fastest one's, in these updates
  double seconds_waited_before_ = 0;      ///< time spent waiting for data until the last line of the log
  bool is_saved_ = true;                  ///< true if the current step is saved
};

}  // namespace lacuna
