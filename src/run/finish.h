#pragma once

#include <map>
#include <string>
#include <vector>

#include "run/setup.h"
#include "run/training_log.h"

namespace lacuna {

/// What follows a run's last update: the average of its last checkpoints, and the scores of its test sets. Each is done once; a start that
/// finds it done does not repeat it.
class RunFinish {
 public:
  /// `run` must live as long.
  explicit RunFinish(const RunSetup& run) : run_(run), options_(run.options) {}

  /// Returns true if a run that stands at `step` has its average and all its scores.
  bool is_done(int64_t step) const { return is_averaged(step) && unscored_test_sets().empty(); }

  /// Averages, scores the test sets with the weights that translate, and logs where the models are. Ends early if an interruption comes.
  void complete(const TrainingState& state, TrainingLog& log);

 private:
  bool is_averaged(int64_t step) const;
  void average_last(TrainingLog& log) const;
  std::vector<const EvaluationSet*> unscored_test_sets() const;
  void score_test_sets(TrainingLog& log) const;
  void log_models(const TrainingState& state, TrainingLog& log) const;

  const RunSetup& run_;
  const Options& options_;
};

/// Writes the translations of a set, one a line, and makes the file's folder.
void write_hypotheses(const std::string& file, const Evaluation& evaluation);

}  // namespace lacuna
