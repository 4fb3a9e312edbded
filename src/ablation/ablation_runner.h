#pragma once

#include <string>
#include <vector>

#include "ablation/ablation_plan.h"
#include "ablation/run_result.h"
#include "metrics/sacrebleu.h"

namespace lacuna {

struct AblationSettings {
  int64_t rounds = 3;                  ///< times the test set is translated to measure the speed; 0 = it is not measured
  std::vector<std::string> log_flags;  ///< --quiet or --log-level of the runs
  std::vector<std::string> columns;    ///< of the tables; empty = markdown_table()'s and latex_table()'s own
};

/// Makes the runs of a plan, one after the other, and keeps the folder's tables.
///
/// Training, translating and scoring are this program's own verbs, each in a process of its own: memory and threads of a run are given
/// back at its end, a crash is that run's alone, and speed is measured in a fresh process, as a user meets it.
class AblationRunner {
 public:
  AblationRunner(const AblationPlan& plan, AblationSettings settings);

  /// The exit code: 0, 1 if a run failed, or 128 + the signal that ended it.
  int run_all();

 private:
  void make_vocabularies() const;
  void note_shared_options();
  void make(const PlannedRun& run);
  RunResult row_for(const PlannedRun& run) const;
  RunResult result_of(const PlannedRun& run) const;
  void prepare_folder(const PlannedRun& run) const;
  ScoreOptions scoring_by(std::vector<std::string> metrics) const;
  void translate_and_score(const PlannedRun& run, RunResult& result) const;
  void measure_speed(const PlannedRun& run, RunResult& result) const;
  void measure_loss(const PlannedRun& run, RunResult& result) const;
  std::string start(const std::vector<std::string>& words) const;
  std::vector<std::string> with_search_of(const PlannedRun& run, std::vector<std::string> words) const;

  void compare_all();
  void forget_comparisons_with(const RunResult& made);
  void compare(const PlannedRun& run, const RunResult& baseline);
  const RunResult* baseline_of(const PlannedRun& run) const;
  std::string hypotheses_of(const std::string& variant, int64_t seed) const;
  void write_reports() const;
  int say_how_it_ended() const;

  const AblationPlan& plan_;
  AblationSettings settings_;
  Scorer scorer_;
  ResultsFile results_;
};

}  // namespace lacuna
