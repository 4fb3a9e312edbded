#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "search/length_penalty.h"
#include "search/search.h"

namespace lacuna {
namespace {

/// The tokens a draw chooses from, most likely first, with their weights exp(log_prob / temperature).
struct Urn {
  std::vector<TokenId> tokens;
  std::vector<double> weights;
};

Urn urn_of(const float* log_probs, int64_t vocab_size, const std::vector<TokenId>& blocked, const TranslateOptions& options) {
  Urn urn;
  urn.tokens.resize(static_cast<size_t>(vocab_size));
  std::iota(urn.tokens.begin(), urn.tokens.end(), 0);
  std::erase_if(urn.tokens, [&](TokenId token) { return std::find(blocked.begin(), blocked.end(), token) != blocked.end(); });
  std::stable_sort(urn.tokens.begin(), urn.tokens.end(), [&](TokenId a, TokenId b) { return log_probs[a] > log_probs[b]; });
  if (options.sampling == Sampling::kTopK) urn.tokens.resize(std::min(urn.tokens.size(), static_cast<size_t>(options.sample_k)));
  for (const TokenId token : urn.tokens) urn.weights.push_back(std::exp(log_probs[token] / options.temperature));
  if (options.sampling == Sampling::kTopP) {
    const double mass = options.sample_p * std::accumulate(urn.weights.begin(), urn.weights.end(), 0.0);
    size_t kept = 0;
    for (double sum = 0; kept < urn.weights.size() && sum < mass; ++kept) sum += urn.weights[kept];
    urn.weights.resize(kept);
  }
  return urn;
}

TokenId draw(const Urn& urn, RandomStream random) {
  double point = random.next_unit() * std::accumulate(urn.weights.begin(), urn.weights.end(), 0.0);
  size_t chosen = 0;
  while (chosen + 1 < urn.weights.size() && (point -= urn.weights[chosen]) >= 0) ++chosen;
  return urn.tokens[chosen];
}

/// Draws the translations of a batch; live ones stand in the order of the cache's rows.
class Sampler {
 public:
  Sampler(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings)
      : model_(model), inputs_(inputs), settings_(settings), results_(inputs.size()) {}

  SearchResults run() {
    std::vector<std::vector<TokenId>> sources;
    for (const SearchInput& input : inputs_) sources.push_back(input.src);
    const auto cache = model_.start(sources);
    cache->set_alignment_layer(settings_.alignment_layer);
    cache->select(first_rows());
    while (!live_.empty()) {
      std::vector<TokenId> last;
      for (const Hypothesis& hypothesis : live_) last.push_back(hypothesis.last_token());
      const Tensor log_probs = model_.step(last, *cache).log_probs().contiguous();
      cache->select(extend(log_probs, cache->alignment()));
    }
    for (auto& drawn : results_)
      std::stable_sort(drawn.begin(), drawn.end(), [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    return std::move(results_);
  }

 private:
  std::vector<int32_t> first_rows() {
    std::vector<int32_t> parents;
    for (size_t s = 0; s < inputs_.size(); ++s)
      for (int32_t d = 0; d < settings_.options.n_best; ++d) {
        live_.emplace_back().draw = d;
        sentence_of_row_.push_back(s);
        parents.push_back(static_cast<int32_t>(s));
      }
    return parents;
  }

  TokenId next_token(const Hypothesis& hypothesis, const SearchInput& input, const float* log_probs, bool& is_forced) const {
    const auto position = static_cast<size_t>(hypothesis.length());
    is_forced = hypothesis.length() + 1 >= length_limit(settings_.options, static_cast<int64_t>(input.src.size()), model_.max_positions());
    if (is_forced) return kEos;
    if (position < input.prefix.size()) return input.prefix[position];
    const Urn urn = urn_of(log_probs, model_.vocab_size(), settings_.constraints.blocked_after(hypothesis), settings_.options);
    is_forced = urn.tokens.empty();
    if (is_forced) return kEos;
    const uint64_t key = random_key(settings_.seed, RandomUse::kSample, position, static_cast<uint64_t>(hypothesis.draw));
    return draw(urn, RandomStream(key, static_cast<uint64_t>(input.id)));
  }

  std::vector<int32_t> extend(const Tensor& log_probs, const std::vector<std::vector<float>>& alignment) {
    std::vector<Hypothesis> live;
    std::vector<int32_t> parents;
    std::vector<size_t> sentences;
    for (size_t row = 0; row < live_.size(); ++row) {
      const size_t s = sentence_of_row_[row];
      const float* of_row = log_probs.const_data_ptr<float>() + static_cast<int64_t>(row) * log_probs.size(1);
      Hypothesis next = std::move(live_[row]);
      const TokenId token = next_token(next, inputs_[s], of_row, next.is_truncated);
      next.tokens.push_back(token);
      next.token_log_probs.push_back(of_row[token]);
      next.log_prob += of_row[token];
      if (!alignment.empty()) next.alignment.push_back(std::make_shared<const std::vector<float>>(alignment[row]));
      if (next.is_finished()) {
        next.score = next.log_prob / length_penalty(settings_.options, next.length());
        results_[s].push_back(std::move(next));
        continue;
      }
      live.push_back(std::move(next));
      parents.push_back(static_cast<int32_t>(row));
      sentences.push_back(s);
    }
    live_ = std::move(live);
    sentence_of_row_ = std::move(sentences);
    return parents;
  }

  StepModel& model_;
  const std::vector<SearchInput>& inputs_;
  const SearchSettings& settings_;
  SearchResults results_;
  std::vector<Hypothesis> live_;
  std::vector<size_t> sentence_of_row_;
};

}  // namespace

SearchResults sample(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings) {
  return Sampler(model, inputs, settings).run();
}

}  // namespace lacuna
