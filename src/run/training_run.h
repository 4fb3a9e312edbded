#pragma once

#include <chrono>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/rules.h"
#include "data/evaluation_set.h"
#include "data/training_data.h"
#include "model/transformer.h"
#include "ranks/group.h"
#include "ranks/watch.h"
#include "run/joint_start.h"
#include "run/training_log.h"
#include "run/validation.h"
#include "train/checkpoint_keeper.h"
#include "train/diagnosis.h"
#include "train/optimizer.h"
#include "train/run_takeover.h"
#include "train/trainer.h"
#include "train/training_state.h"

namespace lacuna {

/// Everything that a configuration of `lacuna train` names, put together, and standing where its run folder stands.
struct RunSetup {
  /// `ranks` must live as long.
  explicit RunSetup(Group& ranks) : group(ranks) {}

  Group& group;                                   ///< the processes that serve the run; rank 0 alone writes files
  int64_t ranks_here = 1;                         ///< ranks on this machine
  Options options;                                ///< with what was chosen for each `auto`
  std::unique_ptr<RunLock> lock;                  ///< null at ranks other than 0
  std::unique_ptr<RunReplacement> replacement;    ///< of the run in the folder, until it has taken its place; else null
  std::optional<Vocabularies> kept_vocabularies;  ///< of the checkpoint that training starts from
  std::unique_ptr<OwnCache> own_cache;            ///< where other ranks do not see the run folder; null for one process
  TrainingData data;
  std::shared_ptr<Transformer> model;
  std::unique_ptr<Optimizer> optimizer;
  TrainingState state;  ///< where training starts
  bool is_resumed = false;
  std::vector<std::string> damaged;  ///< checkpoints newer than the one that training goes on from
  std::vector<EvaluationSet> validation_sets, test_sets;
  std::unique_ptr<Validator> validator;

  /// The folder that files are written to: the run folder, once no other run is in it.
  std::string folder() const { return replacement ? replacement->folder() : options.run; }
};

/// Locks the run folder, for which it waits up to `patience`, reads the data, makes the model, and finds where to go on. Throws, before any
/// training and at all ranks, what is wrong. Collective.
RunSetup set_up_run(const Configuration& given, Group& group, std::chrono::seconds patience = {});

/// Logs what is going to be trained: sizes, device, batches, an epoch, and what a person should know of its length.
void log_setup(const RunSetup& run);

/// What follows a run's last update, once, whatever the number of starts: the average of its last checkpoints, scores of its test sets.
/// Collective.
class RunFinish {
 public:
  /// `run` must live as long.
  explicit RunFinish(const RunSetup& run) : run_(run), options_(run.options) {}

  /// Returns true if a run that stands at `step` has its average and all its scores. For rank 0 alone.
  bool is_done(int64_t step) const { return is_averaged(step) && unscored_test_sets().empty(); }

  /// Averages, scores the test sets with the weights that translate, and logs where the models are. Ends early if an interruption comes.
  /// The log is rank 0's; null elsewhere.
  void complete(const TrainingState& state, TrainingLog* log);

 private:
  bool is_averaged(int64_t step) const;
  void average_last(TrainingLog& log) const;
  std::vector<const EvaluationSet*> unscored_test_sets() const;
  void score_test_sets(TrainingLog* log) const;
  void log_models(const TrainingState& state, TrainingLog& log) const;

  const RunSetup& run_;
  const Options& options_;
};

/// Writes the translations of a set, one a line, and makes the file's folder.
void write_hypotheses(const std::string& file, const Evaluation& evaluation);

/// A run of `lacuna train` from its first update of this start to its end.
class TrainingRun {
 public:
  /// `watch`, of the setup's group, must live as long.
  TrainingRun(RunSetup setup, Watch& watch);

  /// Trains, averages, scores the test sets. Returns the exit code: 0, or 128 + the signal that ended it.
  int execute();

 private:
  void begin_at(const TrainingState& state);
  TrainingEnd train();
  bool go_back();
  void diagnose();
  void diagnose(const SavedUpdate& update);
  void warn(const std::string& text);
  void replace_old_run();
  void write_configuration() const;
  void open_log();
  TrainerHooks hooks();
  void warn_of_divergence(const TrainingProgress& progress);
  std::optional<Scores> validate();
  static Scores scores_of(const std::vector<Evaluation>& evaluations);
  void log_validation(const std::vector<Evaluation>& evaluations);
  void log_best(const Scores& scores) const;

  RunSetup run_;
  const Options& options_;
  Group& group_;
  Watch& watch_;
  CheckpointKeeper keeper_;
  std::unique_ptr<TrainingLog> log_;  ///< at rank 0
  std::unique_ptr<BatchStream> stream_;
  std::unique_ptr<Trainer> trainer_;
  bool has_diverged_ = false;
  int64_t saved_updates_ = -1;  ///< of the optimizer, that made the weights saved last
};

/// `lacuna check`: reads the data, trains a few batches, translates a sentence, and prints to `out` what a run would take, with its number
/// of warnings in the last line. Writes nothing but data.cache, where it is set. Throws what would keep training from starting.
void check_configuration(const Configuration& given, std::ostream& out);

/// `lacuna check --replay`: repeats the update that training saved in `file` (train/diagnosis.h) with the weights that it would start from,
/// and prints to `out` which numbers are not finite. Writes nothing.
void replay_update(const Configuration& given, const std::string& file, std::ostream& out);

}  // namespace lacuna
