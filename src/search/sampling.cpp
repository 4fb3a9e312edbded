#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/interrupt.h"
#include "base/random.h"
#include "search/length_penalty.h"
#include "search/search.h"

namespace lacuna {
namespace {

/// The tokens that a draw chooses from, with weights proportional to probability^(1 / temperature).
struct Urn {
  struct Ball {
    TokenId token;
    double weight;
  };
  std::vector<Ball> balls;

  double weight() const {
    return std::accumulate(balls.begin(), balls.end(), 0.0, [](double sum, const Ball& ball) { return sum + ball.weight; });
  }
};

bool is_likelier(const Urn::Ball& a, const Urn::Ball& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
}

void keep_best(Urn& urn, size_t count) {
  count = std::min(count, urn.balls.size());
  std::partial_sort(urn.balls.begin(), urn.balls.begin() + static_cast<std::ptrdiff_t>(count), urn.balls.end(), is_likelier);
  urn.balls.resize(count);
}

/// Keeps the fewest balls that hold `share` of the weight. Balls lighter than (1 - share) of the mean together hold
/// less than 1 - share, so they are dropped before sorting.
void keep_share(Urn& urn, double share) {
  const double total = urn.weight(), lightest = (1 - share) * total / static_cast<double>(urn.balls.size());
  std::erase_if(urn.balls, [=](const Urn::Ball& ball) { return ball.weight < lightest; });
  std::sort(urn.balls.begin(), urn.balls.end(), is_likelier);
  size_t kept = 0;
  for (double sum = 0; kept < urn.balls.size() && sum < share * total; ++kept) sum += urn.balls[kept].weight;
  urn.balls.resize(kept);
}

/// Returns the urn for the token after those of `before`, to which the repetition penalty applies.
Urn make_urn(const float* log_probs, int64_t vocab_size, const std::vector<TokenId>& before, const std::vector<TokenId>& blocked,
             const TranslateOptions& options) {
  std::vector<float> allowed(log_probs, log_probs + vocab_size);
  if (options.repetition_penalty != 1)
    for (const TokenId token : std::set<TokenId>(before.begin(), before.end()))
      allowed[static_cast<size_t>(token)] *= static_cast<float>(options.repetition_penalty);
  for (const TokenId token : blocked) allowed[static_cast<size_t>(token)] = kImpossible;
  const float top = *std::max_element(allowed.begin(), allowed.end());
  Urn urn;
  for (TokenId token = 0; token < vocab_size; ++token)
    if (const float log_prob = allowed[static_cast<size_t>(token)]; log_prob != kImpossible)
      urn.balls.push_back({token, std::exp((static_cast<double>(log_prob) - top) / options.temperature)});
  if (urn.balls.empty()) return urn;
  if (options.sampling == Sampling::kTopK) keep_best(urn, static_cast<size_t>(options.sample_k));
  if (options.sampling == Sampling::kTopP) keep_share(urn, options.sample_p);
  return urn;
}

TokenId draw(const Urn& urn, RandomStream random) {
  double point = random.next_unit() * urn.weight();
  size_t chosen = 0;
  while (chosen + 1 < urn.balls.size() && (point -= urn.balls[chosen].weight) >= 0) ++chosen;
  return urn.balls[chosen].token;
}

/// Draws the translations of a batch. Live hypotheses are in the order of the cache's rows.
class Sampler {
 public:
  Sampler(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings)
      : model_(model), inputs_(inputs), settings_(settings), results_(inputs.size()) {}

  SearchResults run() {
    const auto cache = start(model_, inputs_, settings_);
    cache->reserve(most_tokens());
    cache->select(first_rows());
    while (!live_.empty()) {
      stop_if_interrupted("translating");
      if (settings_.look) settings_.look();
      std::vector<TokenId> last;
      for (const Hypothesis& hypothesis : live_) last.push_back(hypothesis.last_token());
      const Logits logits = model_.step(last, *cache);
      cache->select(extend(logits, cache->alignment()));
    }
    for (auto& drawn : results_)
      std::stable_sort(drawn.begin(), drawn.end(), [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    return std::move(results_);
  }

 private:
  static constexpr size_t kRowsAtATime = 256;

  /// Returns the most tokens that live hypotheses may have at once.
  int64_t most_tokens() const {
    int64_t most = 0;
    for (const SearchInput& input : inputs_) {
      const TranslateOptions& options = options_of(input, settings_);
      most += options.n_best * length_limit(options, input, model_.max_positions());
    }
    return most;
  }

  std::vector<int32_t> first_rows() {
    std::vector<int32_t> parents;
    for (size_t s = 0; s < inputs_.size(); ++s)
      for (int32_t d = 0; d < options_of(inputs_[s], settings_).n_best; ++d) {
        live_.emplace_back().draw = d;
        sentence_of_row_.push_back(s);
        parents.push_back(static_cast<int32_t>(s));
      }
    return parents;
  }

  TokenId next_token(const Hypothesis& hypothesis, const SearchInput& input, const float* log_probs, bool& is_forced) const {
    const TranslateOptions& options = options_of(input, settings_);
    const TokenId forced = forced_after(hypothesis, input, length_limit(options, input, model_.max_positions()));
    is_forced = forced == kEos;
    if (forced != kNotForced) return forced;
    const std::vector<TokenId> blocked = constraints_of(input, settings_).blocked_after(hypothesis);
    const Urn urn = make_urn(log_probs, model_.vocab_size(), hypothesis.tokens, blocked, options);
    is_forced = urn.balls.empty();
    if (is_forced) return kEos;
    const uint64_t key =
        random_key(settings_.seed, RandomUse::kSample, static_cast<uint64_t>(hypothesis.length()), static_cast<uint64_t>(hypothesis.draw));
    return draw(urn, RandomStream(key, static_cast<uint64_t>(input.id)));
  }

  /// Returns the log-probabilities of up to kRowsAtATime rows from `first` on; those of all could take gigabytes.
  static Tensor log_probs_from(const Logits& logits, size_t first) {
    std::vector<int32_t> rows(std::min(kRowsAtATime, static_cast<size_t>(logits.num_rows()) - first));
    std::iota(rows.begin(), rows.end(), static_cast<int32_t>(first));
    return logits.log_probs(&rows);
  }

  std::vector<int32_t> extend(const Logits& logits, const std::vector<std::vector<float>>& alignment) {
    std::vector<Hypothesis> live;
    std::vector<int32_t> parents;
    std::vector<size_t> sentences;
    Tensor log_probs;
    for (size_t row = 0; row < live_.size(); ++row) {
      if (row % kRowsAtATime == 0) log_probs = log_probs_from(logits, row);
      const size_t s = sentence_of_row_[row];
      const float* of_row = log_probs.const_data_ptr<float>() + static_cast<int64_t>(row % kRowsAtATime) * log_probs.size(1);
      Hypothesis next = std::move(live_[row]);
      require_number(of_row[kEos], kEos);
      const TokenId token = next_token(next, inputs_[s], of_row, next.is_truncated);
      next.tokens.push_back(token);
      next.token_log_probs.push_back(of_row[token]);
      next.log_prob += of_row[token];
      if (!alignment.empty()) next.alignment.push_back(std::make_shared<const std::vector<float>>(alignment[row]));
      if (next.is_finished()) {
        next.score = next.log_prob / length_penalty(options_of(inputs_[s], settings_), next.length());
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

void sample(StepModel& model, SearchQueue& queue, const SearchSettings& settings) {
  for (std::vector<size_t> places = queue.take(0); !places.empty(); places = queue.take(0)) {
    const std::vector<SearchInput> inputs = queue.inputs(places);
    SearchResults drawn = Sampler(model, inputs, settings).run();
    for (size_t i = 0; i < places.size(); ++i) queue.finish(places[i], std::move(drawn[i]));
  }
}

}  // namespace lacuna
