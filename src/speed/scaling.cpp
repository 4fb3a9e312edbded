#include "speed/scaling.h"

#include <algorithm>
#include <cmath>

#include "train/shard.h"

namespace lacuna {
namespace {

constexpr double kWeightBytes = 4, kScatter = 0.02, kBackwardShare = 0.55;

/// Returns about how many standard deviations the largest of n draws lies above the mean (Blom 1958).
double largest_of(int64_t n) {
  const double wanted = (static_cast<double>(n) - 0.375) / (static_cast<double>(n) + 0.25);
  double low = -10, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2, below = std::erfc(-middle / std::sqrt(2.0)) / 2;
    (below < wanted ? low : high) = middle;
  }
  return low;
}

}  // namespace

double bytes_sent(const RankCosts& costs, int64_t ranks) {
  return costs.parameters * (costs.gradient_bytes + kWeightBytes) * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
}

double estimated_efficiency(const RankCosts& costs, int64_t ranks) {
  const double buckets = std::ceil(costs.parameters / static_cast<double>(least_bucket(static_cast<int>(ranks))));
  const double messages = 2 * buckets * static_cast<double>(ranks - 1) * costs.message_seconds;
  const double exchange = bytes_sent(costs, ranks) / costs.bytes_per_second + messages;
  const double of_gradients = exchange * costs.gradient_bytes / (costs.gradient_bytes + kWeightBytes);
  const double hidden = std::min(of_gradients, kBackwardShare * costs.compute_seconds);
  const double slowest = costs.compute_seconds * (1 + kScatter * largest_of(ranks));
  return std::min(1.0, costs.compute_seconds / (slowest + exchange - hidden));
}

}  // namespace lacuna
