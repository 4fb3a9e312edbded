#pragma once

#include <cstdint>
#include <vector>

/// Statistics of measured times and scores.
namespace lacuna {

/// Returns the middle value, or the mean of the middle two of an even number. REQUIRES: at least one value.
double median(std::vector<double> values);

/// A closed interval.
struct Interval {
  double low = 0, high = 0;
};

/// Confidence interval of a median by the percentile bootstrap (Efron 1979): the values are resampled with replacement `draws` times, and
/// a share `confidence` of the samples' medians lies in the interval. A pure function of its arguments. REQUIRES: at least one value.
Interval bootstrap_median(const std::vector<double>& values, double confidence = 0.95, int64_t draws = 10000, uint64_t seed = 1);

/// How a variant compares with a baseline for the same work, measured in pairs.
struct PairedRatio {
  double median = 0;  ///< median of variant[i] / baseline[i]
  Interval interval;  ///< 95 %, by bootstrap over the pairs
};

/// Compares seconds measured in pairs. REQUIRES: both lists have the same length, at least 1.
PairedRatio paired_ratio(const std::vector<double>& baseline, const std::vector<double>& variant);

}  // namespace lacuna
