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

void add_comparisons(const Rows& rows, VariantSummary& summary) {
  std::vector<double> differences;
  for (const RunResult* row : rows) {
    if (!row->comparison) continue;
    summary.against = row->comparison->against;
    differences.push_back(row->comparison->difference);
    summary.p_values.push_back(row->comparison->p_value);
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
  add_comparisons(rows, summary);
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

AblationReport summarize(const std::vector<RunResult>& rows, const std::vector<std::string>& order) {
  AblationReport report{.test_set = "", .signature = "", .variants = {}, .runs = rows};
  std::vector<std::string> names = order;
  for (const RunResult& row : rows) {
    names.push_back(row.variant);
    if (!row.is_ended()) continue;
    report.test_set = row.test_set;
    report.signature = row.signature;
  }
  std::vector<std::string> seen;
  for (const std::string& name : names) {
    const bool has_rows = std::any_of(rows.begin(), rows.end(), [&](const RunResult& row) { return row.variant == name; });
    if (!has_rows || std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.push_back(name);
    report.variants.push_back(summary_of(name, rows));
  }
  return report;
}

}  // namespace lacuna
