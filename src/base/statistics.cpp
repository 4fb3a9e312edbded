#include "base/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace lacuna {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

Interval bootstrap_median(const std::vector<double>& values, double confidence, int64_t draws, uint64_t seed) {
  RandomStream random(seed);
  std::vector<double> medians, sample(values.size());
  for (int64_t draw = 0; draw < draws; ++draw) {
    for (double& value : sample) value = values[random.next_below(values.size())];
    medians.push_back(median(sample));
  }
  std::sort(medians.begin(), medians.end());
  const double tail = (1 - confidence) / 2 * static_cast<double>(draws - 1);
  const auto below = static_cast<size_t>(std::floor(tail));
  return {medians[below], medians[medians.size() - 1 - below]};
}

PairedRatio paired_ratio(const std::vector<double>& baseline, const std::vector<double>& variant) {
  std::vector<double> ratios;
  for (size_t i = 0; i < baseline.size(); ++i) ratios.push_back(variant[i] / baseline[i]);
  return {median(ratios), bootstrap_median(ratios)};
}

}  // namespace lacuna
