#pragma once

#include <cstdint>
#include <vector>

/// What measurements come to.
namespace lacuna {

/// The middle value; of an even number of values the mean of the middle two. At least one value.
double median(std::vector<double> values);

/// From `low` to `high`, both within.
struct Interval {
  double low = 0, high = 0;
};

/// How sure a median is: the percentile bootstrap (Efron 1979). The values are drawn anew, with replacement, `draws` times; the medians of
/// these samples lie in the interval with frequency `confidence`. A pure function of its arguments. At least one value.
Interval bootstrap_median(const std::vector<double>& values, double confidence = 0.95, int64_t draws = 10000, uint64_t seed = 1);

/// A variant against a baseline, measured side by side: in pair i one took baseline[i] seconds and the other variant[i] for the same work.
struct PairedRatio {
  double median = 0;  ///< of variant[i] / baseline[i]
  Interval interval;  ///< 95 %, by bootstrap over the pairs
};

/// Both of one length, at least 1.
PairedRatio paired_ratio(const std::vector<double>& baseline, const std::vector<double>& variant);

}  // namespace lacuna
