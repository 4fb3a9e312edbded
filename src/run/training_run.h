#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "run/setup.h"
#include "run/training_log.h"
#include "train/checkpoint_keeper.h"
#include "train/trainer.h"

namespace lacuna {

/// A run of `lacuna train` from its first update of this start to its end.
class TrainingRun {
 public:
  explicit TrainingRun(RunSetup setup);

  /// Trains, averages, scores the test sets. Returns the exit code: 0, or 128 + the signal that ended it.
  int execute();

 private:
  void replace_old_run();
  void write_configuration() const;
  void open_log();
  TrainerHooks hooks();
  void warn_of_divergence(const TrainingProgress& progress);
  std::optional<Scores> validate();
  Scores log_validation(const std::vector<Evaluation>& evaluations);
  void log_best(const Scores& scores) const;

  RunSetup run_;
  const Options& options_;
  CheckpointKeeper keeper_;
  std::unique_ptr<TrainingLog> log_;
  const Trainer* trainer_ = nullptr;  ///< while `execute` runs
  bool has_diverged_ = false;
};

}  // namespace lacuna
