#include "analysis/row_measures.h"

#include <algorithm>
#include <cmath>

namespace lacuna {
namespace {

double minus_p_log_p(double p) {
  return p > 0 ? -p * std::log(p) : 0;
}

double entropy_of_distribution(std::span<const double> p) {
  double entropy = 0;
  for (const double one : p) entropy += minus_p_log_p(one);
  return entropy;
}

double sum_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

template <class T>
double entropy_of_magnitudes(std::span<const T> weights) {
  double sum = 0, sum_of_logs = 0;
  for (const T weight : weights) {
    const double p = std::abs(static_cast<double>(weight));
    if (!(p > 0)) continue;  // 0 or NaN
    sum += p;
    sum_of_logs += p * std::log(p);
  }
  return sum > 0 ? std::log(sum) - sum_of_logs / sum : 0;
}

}  // namespace

double entropy_of(std::span<const float> weights) {
  return entropy_of_magnitudes(weights);
}

double entropy_of(std::span<const double> weights) {
  return entropy_of_magnitudes(weights);
}

RowMeasures measure_row(std::span<const float> weights) {
  RowMeasures row;
  for (const float weight : weights) {
    row.visible += !std::isnan(weight);
    row.zeros += weight == 0;
  }
  row.entropy = entropy_of(weights);
  return row;
}

double HeadDivergence::operator()(std::span<const std::span<const float>> heads, std::optional<double> temperature) {
  mean_.assign(heads.front().size() + 1, 0);
  const double share = 1 / static_cast<double>(heads.size());
  double entropies = 0;
  for (const std::span<const float> row : heads) {
    const bool is_null = std::none_of(row.begin(), row.end(), [](float weight) { return std::abs(weight) > 0; });
    if (is_null)
      mean_.back() += share;
    else
      entropies += temperature ? add_softmax(row, *temperature, share) : add_scaled(row, share);
  }
  return std::max(0.0, entropy_of_distribution(mean_) - share * entropies);
}

/// Adds share * p to the mean; gives back H(p).
double HeadDivergence::add_scaled(std::span<const float> row, double share) {
  double sum = 0;
  for (const float weight : row)
    if (!std::isnan(weight)) sum += std::abs(static_cast<double>(weight));
  for (size_t j = 0; j < row.size(); ++j)
    if (!std::isnan(row[j])) mean_[j] += share * std::abs(static_cast<double>(row[j])) / sum;
  return entropy_of(row);
}

double HeadDivergence::add_softmax(std::span<const float> row, double temperature, double share) {
  double top = -INFINITY, sum = 0, sum_of_exponents = 0;
  for (const float weight : row)
    if (!std::isnan(weight)) top = std::max(top, temperature * static_cast<double>(weight));
  const auto exponent = [&](float weight) { return temperature * static_cast<double>(weight) - top; };
  for (const float weight : row) {
    if (std::isnan(weight)) continue;
    const double e = std::exp(exponent(weight));
    sum += e;
    sum_of_exponents += e * exponent(weight);
  }
  for (size_t j = 0; j < row.size(); ++j)
    if (!std::isnan(row[j])) mean_[j] += share * std::exp(exponent(row[j])) / sum;
  return std::log(sum) - sum_of_exponents / sum;
}

double js_divergence(std::span<const double> p, std::span<const double> q) {
  const double sum_p = sum_of(p), sum_q = sum_of(q);
  double divergence = 0;
  for (size_t j = 0; j < p.size(); ++j) {
    const double a = p[j] / sum_p, b = q[j] / sum_q;
    divergence += minus_p_log_p((a + b) / 2) - (minus_p_log_p(a) + minus_p_log_p(b)) / 2;
  }
  return std::max(0.0, divergence);
}

std::optional<double> kendall_tau_b(std::span<const double> x, std::span<const double> y) {
  int64_t agreement = 0, untied_x = 0, untied_y = 0;
  const auto sign = [](double value) { return (value > 0) - (value < 0); };
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const int in_x = sign(x[i] - x[j]), in_y = sign(y[i] - y[j]);
      agreement += in_x * in_y;
      untied_x += in_x != 0;
      untied_y += in_y != 0;
    }
  }
  if (untied_x == 0 || untied_y == 0) return {};
  return static_cast<double>(agreement) / std::sqrt(static_cast<double>(untied_x) * static_cast<double>(untied_y));
}

}  // namespace lacuna
