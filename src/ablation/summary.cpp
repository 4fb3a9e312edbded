#include "ablation/summary.h"

#include <algorithm>
#include <cmath>

namespace lacuna {
namespace {

using Rows = std::vector<const RunResult*>;

std::optional<Mean> mean_over(const Rows& rows, std::optional<double> RunResult::*field) {
  std::vector<double> values;
  for (const RunResult* row : rows)
    if (row->*field) values.push_back(*(row->*field));
  return mean_of(values);
}

std::optional<double> only_mean(const std::optional<Mean>& mean) {
  return mean ? std::optional(mean->mean) : std::nullopt;
}

std::map<std::string, double> mean_sparsity(const Rows& rows) {
  std::map<std::string, std::vector<double>> by_site;
  for (const RunResult* row : rows)
    for (const auto& [site, value] : row->sparsity) by_site[site].push_back(value);
  std::map<std::string, double> means;
  for (const auto& [site, values] : by_site) means[site] = mean_of(values)->mean;
  return means;
}

/// The comparisons of rows with one of `all`: another may be left out of the table.
std::vector<const Comparison*> comparisons_within(const Rows& rows, const std::vector<RunResult>& all) {
  std::vector<const Comparison*> found;
  for (const RunResult* row : rows) {
    if (!row->comparison) continue;
    const Comparison& made = *row->comparison;
    const auto is_other = [&](const RunResult& run) { return run.variant == made.against && run.seed == made.seed; };
    if (std::any_of(all.begin(), all.end(), is_other)) found.push_back(&made);
  }
  return found;
}

/// Adds the comparisons with the variant that the last one compares with: a mean over several variants would mean nothing.
void add_comparisons(const std::vector<const Comparison*>& comparisons, VariantSummary& summary) {
  std::vector<double> differences;
  for (const Comparison* made : comparisons) {
    if (made->against != comparisons.back()->against) continue;
    summary.against = made->against;
    differences.push_back(made->difference);
    summary.p_values.push_back(made->p_value);
  }
  summary.difference = only_mean(mean_of(differences));
}

VariantSummary summary_of(const std::string& name, const std::vector<RunResult>& all) {
  VariantSummary summary{.name = name, .seeds = {}};
  Rows rows;
  for (const RunResult& row : all) {
    if (row.variant != name) continue;
    if (!row.is_ended()) {
      summary.failures.emplace_back(row.seed, row.error);
      continue;
    }
    rows.push_back(&row);
    summary.seeds.push_back(row.seed);
    if (row.bleu) summary.bleu_values.push_back(*row.bleu);
  }
  summary.bleu = mean_over(rows, &RunResult::bleu);
  summary.chrf = mean_over(rows, &RunResult::chrf);
  summary.valid_loss = mean_over(rows, &RunResult::valid_loss);
  summary.bleu_interval = only_mean(mean_over(rows, &RunResult::bleu_interval));
  add_comparisons(comparisons_within(rows, all), summary);
  summary.train_speed = mean_over(rows, &RunResult::train_speed);
  summary.translate_speed = mean_over(rows, &RunResult::translate_speed);
  summary.parameters = mean_over(rows, &RunResult::parameters);
  summary.peak_mebibytes = mean_over(rows, &RunResult::peak_mebibytes);
  summary.epochs = mean_over(rows, &RunResult::epochs);
  summary.updates = mean_over(rows, &RunResult::updates);
  summary.hours = mean_over(rows, &RunResult::hours);
  summary.sparsity = mean_sparsity(rows);
  return summary;
}

/// Signatures differ where sacreBLEU itself was exchanged between runs: then all of them are said.
void add_what_was_scored(const RunResult& run, AblationReport& report) {
  report.test_set = run.test_set;
  if (report.signature.find(run.signature) != std::string::npos) return;
  report.signature.append(report.signature.empty() ? "" : "; ").append(run.signature);
}

}  // namespace

std::optional<Mean> mean_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  const double count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  return Mean{mean, deviation, static_cast<int64_t>(values.size())};
}

bool TableScope::holds(const RunResult& row) const {
  const auto own = fingerprints.find(row.variant);
  return own != fingerprints.end() && row.fingerprint == own->second;
}

AblationReport summarize(const std::vector<RunResult>& rows, const std::vector<std::string>& order, const TableScope& scope) {
  AblationReport report;
  std::vector<std::string> names = order;
  for (const RunResult& row : rows) {
    if (!scope.holds(row)) {
      report.left_out.push_back(row);
      continue;
    }
    report.runs.push_back(row);
    names.push_back(row.variant);
    if (row.is_ended()) add_what_was_scored(row, report);
  }
  std::vector<std::string> seen;
  for (const std::string& name : names) {
    const bool has_runs = std::any_of(report.runs.begin(), report.runs.end(), [&](const RunResult& run) { return run.variant == name; });
    if (!has_runs || std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.push_back(name);
    report.variants.push_back(summary_of(name, report.runs));
  }
  return report;
}

}  // namespace lacuna
