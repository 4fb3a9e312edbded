#pragma once

#include <string>
#include <vector>

#include "ablation/run_result.h"
#include "ablation/summary.h"
#include "ablation/variant.h"
#include "config/load.h"
#include "config/rules.h"

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

}  // namespace lacuna
