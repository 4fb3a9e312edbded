#include "search/guard.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace lacuna {
namespace {

/// Sets the shares of source tokens without attention and of target tokens that attend to nothing. A row is divided by its sum, as
/// rectified weights need not sum to one.
void measure_attention(const GuardedPair& pair, GuardVerdict& verdict) {
  std::vector<double> received(pair.src.size(), 0);
  size_t nulls = 0;
  for (const AlignmentRow& row : pair.attention) {
    const double sum = std::accumulate(row->begin(), row->end(), 0.0);
    if (sum > 0)
      for (size_t s = 0; s < std::min(received.size(), row->size()); ++s) received[s] += static_cast<double>((*row)[s]) / sum;
    else
      ++nulls;
  }
  verdict.null_rate = static_cast<double>(nulls) / static_cast<double>(pair.attention.size());
  const auto words = received.end() - 1;  // without eos
  const auto unattended = std::count_if(received.begin(), words, [](double weight) { return weight < kAttended; });
  verdict.unattended = words == received.begin() ? 0 : static_cast<double>(unattended) / static_cast<double>(words - received.begin());
}

/// Takes account of a measure that uses up this share of its limit.
void weigh(GuardVerdict& verdict, const GuardFlag& flag, double used) {
  verdict.risk = std::max(verdict.risk, used);
  if (used > 1) verdict.flags.push_back(flag);
}

void compare(GuardVerdict& verdict, const GuardLimits& limits) {
  const bool is_long = verdict.length_ratio >= 1;  // a ratio and its inverse are as far from 1
  const double ratio_limit = is_long ? limits.max_length_ratio : limits.min_length_ratio;
  weigh(verdict, {"length_ratio", verdict.length_ratio, ratio_limit, is_long}, std::log(verdict.length_ratio) / std::log(ratio_limit));
  const auto weigh_share = [&](const char* measure, double share, double limit) { weigh(verdict, {measure, share, limit}, share / limit); };
  weigh_share("loop", verdict.loop, limits.max_loop);
  if (verdict.unattended) weigh_share("unattended", *verdict.unattended, limits.max_unattended);
  if (verdict.null_rate) weigh_share("null_rate", *verdict.null_rate, limits.max_null_rate);
  weigh(verdict, {"token_log_prob", verdict.token_log_prob, limits.min_token_log_prob, /*is_at_most=*/false},
        verdict.token_log_prob / limits.min_token_log_prob);
}

}  // namespace

double loop_share(std::span<const TokenId> tokens) {
  constexpr size_t kLongestLoop = 64;
  if (tokens.empty()) return 0;
  std::vector<bool> is_repeated(tokens.size(), false);
  for (size_t n = 1; n <= std::min(kLongestLoop, tokens.size() / 2); ++n) {
    size_t run = 0;  // tokens in a row that are those n places before
    for (size_t i = n; i < tokens.size(); ++i) {
      run = tokens[i] == tokens[i - n] ? run + 1 : 0;
      if (run >= n) std::fill_n(is_repeated.begin() + static_cast<std::ptrdiff_t>(i + 1 - n), n, true);
    }
  }
  const auto repeated = std::count(is_repeated.begin(), is_repeated.end(), true);
  return static_cast<double>(repeated) / static_cast<double>(tokens.size());
}

bool repeats_itself(std::span<const TokenId> tokens) {
  std::set<std::vector<TokenId>> seen;
  for (size_t i = 0; i + kRetryNgramSize <= tokens.size(); ++i) {
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(i);
    if (!seen.emplace(begin, begin + kRetryNgramSize).second) return true;
  }
  return false;
}

GuardVerdict judge(const GuardedPair& pair, const GuardLimits& limits) {
  GuardVerdict verdict;
  verdict.length_ratio = static_cast<double>(pair.tgt.size()) / static_cast<double>(pair.src.size());
  verdict.loop = std::max(0.0, loop_share(pair.tgt) - loop_share(pair.src));
  verdict.token_log_prob =
      std::accumulate(pair.token_log_probs.begin(), pair.token_log_probs.end(), 0.0) / static_cast<double>(pair.token_log_probs.size());
  if (!pair.attention.empty()) measure_attention(pair, verdict);
  compare(verdict, limits);
  return verdict;
}

}  // namespace lacuna
