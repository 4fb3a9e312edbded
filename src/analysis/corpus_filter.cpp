#include "analysis/corpus_filter.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace lacuna {
namespace {

using BadnessOf = std::function<double(size_t)>;  ///< of a pair, larger for worse

std::vector<size_t> sorted_by(const std::vector<PairScore>& scores, const BadnessOf& badness) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (scores[a].is_scored != scores[b].is_scored) return scores[a].is_scored;
    return scores[a].is_scored && badness(a) < badness(b);
  });
  return order;
}

/// The rank of each pair; equals share the mean of theirs. Pairs with and without scores are no equals.
std::vector<double> ranks_by(const std::vector<PairScore>& scores, const BadnessOf& badness) {
  const std::vector<size_t> order = sorted_by(scores, badness);
  std::vector<double> ranks(scores.size());
  const auto are_equal = [&](size_t a, size_t b) { return scores[a].is_scored == scores[b].is_scored && badness(a) == badness(b); };
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    do ++end;
    while (end < order.size() && are_equal(order[end], order[begin]));
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
  }
  return ranks;
}

}  // namespace

std::vector<size_t> ranked(const std::vector<PairScore>& scores, FilterBy by) {
  const BadnessOf by_null_rate = [&](size_t i) { return static_cast<double>(scores[i].null_rate); };
  const BadnessOf by_log_prob = [&](size_t i) { return -static_cast<double>(scores[i].log_prob); };
  if (by == FilterBy::kNullRate) return sorted_by(scores, by_null_rate);
  if (by == FilterBy::kNullContrast) return sorted_by(scores, [&](size_t i) { return static_cast<double>(scores[i].null_contrast); });
  if (by == FilterBy::kLogProb) return sorted_by(scores, by_log_prob);
  const std::vector<double> first = ranks_by(scores, by_null_rate), second = ranks_by(scores, by_log_prob);
  return sorted_by(scores, [&](size_t i) { return first[i] + second[i]; });
}

}  // namespace lacuna
