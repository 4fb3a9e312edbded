#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/configuration.h"
#include "data/batch.h"
#include "data/evaluation_set.h"
#include "data/training_data.h"
#include "metrics/sacrebleu.h"
#include "run/training_log.h"
#include "run/training_start.h"
#include "run/validation.h"
#include "train/checkpoint_keeper.h"
#include "train/resume.h"
#include "train/run_lock.h"
#include "train/run_replacement.h"
#include "train/trainer.h"

namespace lacuna {

/// A whole run of `lacuna train`: everything a configuration names, put together, and trained from where its run folder stands.
class TrainingRun {
 public:
  /// Reads data, makes the model, and finds where to go on. Throws what any of it finds wrong, before anything is trained.
  explicit TrainingRun(const Configuration& given);

  /// Trains, averages, scores the test sets. The exit code: 0, or 128 + the signal that ended it.
  int execute();

 private:
  void choose_products();
  void open_data();
  void make_model();
  void find_start();
  void choose_batch_tokens();
  void open_evaluation_sets();
  std::string folder() const;
  void replace_run();
  void open_log();
  void write_configuration() const;
  void remove_passed_average() const;
  void describe() const;

  TrainerHooks hooks();
  void warn_of_divergence(const TrainingProgress& progress);
  std::optional<Scores> validate();
  Scores note_validation(const std::vector<Evaluation>& evaluations);
  bool is_averaged() const;
  std::vector<const EvaluationSet*> unscored_test_sets() const;
  int complete(const Trainer& trainer);
  void average_last();
  void score_test_sets();

  Options options_;
  Rules rules_;
  std::optional<Scorer> scorer_;
  std::unique_ptr<RunLock> lock_;
  std::unique_ptr<RunReplacement> replacement_;  ///< of the run in the folder, until it has taken place
  std::optional<Vocabularies> kept_vocabularies_;
  TrainingData data_;
  std::shared_ptr<Transformer> model_;
  std::unique_ptr<Optimizer> optimizer_;
  TrainingState start_;
  std::string other_search_;  ///< what to say of validations before
  bool is_resumed_ = false, has_diverged_ = false;
  std::vector<EvaluationSet> validation_sets_, test_sets_;
  std::unique_ptr<Validator> validator_;
  std::unique_ptr<CheckpointKeeper> keeper_;
  std::unique_ptr<TrainingLog> log_;
  const Trainer* trainer_ = nullptr;  ///< while `execute` runs
};

}  // namespace lacuna
