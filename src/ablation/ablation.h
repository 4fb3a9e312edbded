#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ablation/run_result.h"
#include "ablation/summary.h"
#include "ablation/variant.h"
#include "config/load.h"
#include "config/rules.h"
#include "metrics/sacrebleu.h"
#include "train/run_takeover.h"

namespace lacuna {

/// What the command line of `lacuna ablate` asks for.
struct AblationRequest {
  ConfigSources sources;       ///< of what all variants share
  std::string variants_file;   ///< more variants; may be empty
  std::string attention;       ///< the variants wanted; empty = all that are defined
  std::vector<int64_t> seeds;  ///< empty = each variant's own, or the configuration's
  std::string folder;          ///< empty = `run` with _ablation behind it
};

/// One training of an ablation.
struct PlannedRun {
  std::string variant;
  int64_t seed = 1;
  std::string against;      ///< the variant whose run it is compared with; empty for the first of all
  Options options;          ///< `run` is its folder
  std::string fingerprint;  ///< of all that its result depends on, but for the seed
};

struct AblationPlan {
  std::string folder;
  Options shared;                     ///< of the configuration without its variants
  Rules rules;                        ///< where its keys stand
  CorpusOptions test_set;             ///< what is translated and scored
  std::vector<std::string> variants;  ///< all that are known, in the order of the table
  std::string shared_fingerprint;     ///< of `shared` and the test set
  TableScope scope;                   ///< rows of the table: of these runs, and of others with the same shared options
  std::vector<PlannedRun> runs;       ///< seed by seed: every variant has run once before one runs twice
};

/// Returns the file in an ablation's folder that holds a row for each run.
std::string results_file(const std::string& folder);
/// Returns true if `run` has no result yet, or one of other options.
bool is_to_be_made(const PlannedRun& run, const ResultsFile& results);

/// Returns the configuration without variants, checked.
Options shared_options(const ConfigSources& sources);

/// Reads all variants and checks every run's configuration, before anything is written. Throws UsageError and ConfigError.
AblationPlan plan_ablation(const AblationRequest& asked);

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
  std::optional<PairedComparison> comparison_of(const PlannedRun& run, const RunResult& baseline) const;
  void note(const PairedComparison& found, const PlannedRun& run, const RunResult& baseline);
  const RunResult* baseline_of(const PlannedRun& run) const;
  std::string hypotheses_of(const std::string& variant, int64_t seed) const;
  void write_reports() const;
  int say_how_it_ended() const;

  const AblationPlan& plan_;
  AblationSettings settings_;
  Scorer scorer_;
  ResultsFile results_;
  std::unique_ptr<RunLock> lock_;  ///< of the folder, while `run_all` runs
};

}  // namespace lacuna
