#pragma once

#include <cstddef>
#include <vector>

#include "analysis/pair_scores.h"

namespace lacuna {

/// What pairs are ranked by: a low null rate, a low null contrast, a high log-probability, or the mean of a pair's ranks by null rate and
/// log-probability.
enum class FilterBy { kNullRate, kNullContrast, kLogProb, kBoth };

/// Indices of the pairs, the best first; those without scores come last. Equals stay in order.
std::vector<size_t> ranked(const std::vector<PairScore>& scores, FilterBy by);

}  // namespace lacuna
