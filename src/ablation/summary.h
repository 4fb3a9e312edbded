#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ablation/run_result.h"

namespace lacuna {

/// A number over runs with different seeds.
struct Mean {
  double mean = 0;
  double deviation = 0;  ///< of the sample (n - 1); 0 for one run
  int64_t count = 0;
};

/// Returns mean and deviation; none if there are no values.
std::optional<Mean> mean_of(const std::vector<double>& values);

/// The runs of one variant together: a row of the table.
struct VariantSummary {
  std::string name;
  std::vector<int64_t> seeds;                                  ///< of the runs that ended well
  std::vector<std::pair<int64_t, std::string>> failures = {};  ///< seed and error of the others
  std::vector<double> bleu_values = {};
  std::optional<Mean> bleu = {}, chrf = {}, valid_loss = {};
  std::optional<double> bleu_interval = {};  ///< mean over seeds of the bootstrap's
  std::string against = {};
  std::optional<double> difference = {};  ///< in BLEU, mean over the runs that were compared
  std::vector<double> p_values = {};      ///< of each of these
  std::optional<Mean> train_speed = {}, translate_speed = {}, parameters = {}, peak_mebibytes = {};
  std::optional<Mean> epochs = {}, updates = {}, hours = {};
  std::map<std::string, double> sparsity = {};
};

/// The rows that make one table: of each variant, those with the same options and test set.
struct TableScope {
  std::map<std::string, std::string> fingerprints = {};  ///< by variant

  bool holds(const RunResult& row) const;
};

/// Everything that the tables of an ablation show.
struct AblationReport {
  std::string test_set = {}, signature = {};
  std::vector<VariantSummary> variants = {};
  std::vector<RunResult> runs = {};      ///< what the variants are summaries of
  std::vector<RunResult> left_out = {};  ///< rows that the scope does not hold
};

/// Summarizes the rows that `scope` holds by variant: first those of `order`, then others as they come.
AblationReport summarize(const std::vector<RunResult>& rows, const std::vector<std::string>& order, const TableScope& scope);

}  // namespace lacuna
