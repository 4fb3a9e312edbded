#include "analysis/pair_scores.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "analysis/place_measures.h"
#include "attention/registry.h"
#include "base/error.h"
#include "model/logits.h"

namespace lacuna {

std::vector<std::vector<float>> token_log_probs(Transformer& model, const std::vector<const SentencePair*>& pairs, AttentionProbe* probe) {
  const RaggedPairs batch = ragged_pairs(pairs, model.device());
  ForwardContext context;
  context.probe = probe;
  const Tensor log_probs = model.token_log_probs(batch.src, batch.tgt, context).to(at::kCPU, at::kFloat).contiguous();
  require_numbers(log_probs);
  const float* next = log_probs.const_data_ptr<float>();
  std::vector<std::vector<float>> all;
  for (const SentencePair* pair : pairs) {
    all.emplace_back(next, next + pair->tgt.size());
    next += pair->tgt.size();
  }
  return all;
}

namespace {

/// The measures of one pair under forced decoding.
struct ObservedPair {
  double log_prob = 0;            ///< of a token, mean
  HeadSums cross;                 ///< of all layers and heads
  std::vector<float> null_rates;  ///< of each layer and head
};

/// Calls see(pair, observed) for each pair that can be scored.
template <class See>
void observe_pairs(Transformer& model, const std::vector<SentencePair>& pairs, int64_t batch_tokens, See see) {
  for (const auto& batch : batches_of(pairs, batch_tokens)) {
    std::vector<ObservedPair> observed(batch.size());
    const auto observe = [&](const CallWeights& call) {
      const std::vector<PlaceSums> sums = measure_sentences(call, {.divergence = false});
      for (size_t b = 0; b < observed.size(); ++b) {
        observed[b].cross.add(sums[b].pooled());
        for (const HeadSums& head : sums[b].heads) observed[b].null_rates.push_back(static_cast<float>(head.null_rate()));
      }
    };
    const RaggedPairs shapes = ragged_pairs(batch, at::kCPU);
    WeightGatherer gatherer(*shapes.src.shape, *shapes.tgt.shape, model.options().num_heads, false, observe,
                            [](int, AttentionSite site) { return site == AttentionSite::kCross; });
    const std::vector<std::vector<float>> log_probs = token_log_probs(model, batch, &gatherer);
    for (size_t b = 0; b < batch.size(); ++b) {
      const double sum = std::accumulate(log_probs[b].begin(), log_probs[b].end(), 0.0);
      observed[b].log_prob = sum / static_cast<double>(log_probs[b].size());
      see(*batch[b], observed[b]);
    }
  }
}

std::vector<std::vector<float>> null_rates_of(Transformer& model, const std::vector<SentencePair>& pairs, int64_t batch_tokens) {
  std::vector<std::vector<float>> rates;
  observe_pairs(model, pairs, batch_tokens,
                [&](const SentencePair& /*pair*/, const ObservedPair& observed) { rates.push_back(observed.null_rates); });
  return rates;
}

}  // namespace

std::vector<PairScore> score_pairs(Transformer& model, const std::vector<SentencePair>& pairs, int64_t batch_tokens,
                                   const NullContrast* contrast) {
  std::vector<PairScore> scores(pairs.size());
  observe_pairs(model, pairs, batch_tokens, [&](const SentencePair& pair, const ObservedPair& observed) {
    scores[static_cast<size_t>(&pair - pairs.data())] = {
        .null_rate = static_cast<float>(observed.cross.null_rate()),
        .log_prob = static_cast<float>(observed.log_prob),
        .null_contrast = contrast == nullptr ? 0 : static_cast<float>(contrast->of(observed.null_rates)),
        .is_scored = true};
  });
  return scores;
}

NullContrast null_contrast_of(Transformer& model, const std::vector<SentencePair>& pairs, int64_t batch_tokens) {
  std::vector<SentencePair> shuffled;
  for (const SentencePair& pair : pairs)
    if (!pair.is_left_out()) shuffled.push_back(pair);
  if (shuffled.size() < 2) {
    const auto bad = std::ranges::count_if(pairs, [](const SentencePair& pair) { return !pair.error.empty(); });
    const std::string and_bad = bad > 0 ? ", and " + std::to_string(bad) + " could not be taken" : "";
    throw DataError(std::to_string(shuffled.size()) + " of " + std::to_string(pairs.size()) + " pairs can be scored" + and_bad +
                    "; expected 2 or more, as a null contrast takes the targets of others. Rank by null_rate or log_prob");
  }
  const std::vector<std::vector<float>> given = null_rates_of(model, shuffled, batch_tokens);
  const std::vector<TokenId> first = shuffled.front().tgt;
  for (size_t i = 0; i + 1 < shuffled.size(); ++i) shuffled[i].tgt = shuffled[i + 1].tgt;
  shuffled.back().tgt = first;
  return NullContrast::fit(given, null_rates_of(model, shuffled, batch_tokens));
}

bool has_null_rows(const ModelOptions& options) {
  const AttentionPlan plan = resolve_attention(options);
  return std::any_of(plan.cross.begin(), plan.cross.end(), [](const AttentionChoice& choice) {
    const AttentionType& scores = *choice.type;
    return !scores.entry().info.rows_sum_to_one && scores.entry().is_sparse(scores.options());
  });
}

// --- null contrast ---

namespace {

at::Tensor matrix_of(const std::vector<std::vector<float>>& rows) {
  if (rows.size() < 2) throw ShapeError("NullContrast: one row of null rates; expected at least two");
  std::vector<at::Tensor> all;
  all.reserve(rows.size());
  for (const std::vector<float>& row : rows) all.push_back(at::tensor(at::ArrayRef<float>(row), at::kDouble));
  return at::stack(all);
}

at::Tensor covariance_of(const at::Tensor& rows) {
  const at::Tensor centered = rows - rows.mean(0);
  return centered.t().mm(centered) / (rows.size(0) - 1);
}

std::vector<double> numbers_of(const at::Tensor& row) {
  const at::Tensor numbers = row.contiguous();
  return {numbers.const_data_ptr<double>(), numbers.const_data_ptr<double>() + numbers.numel()};
}

}  // namespace

NullContrast NullContrast::fit(const std::vector<std::vector<float>>& given, const std::vector<std::vector<float>>& shuffled) {
  constexpr double kRidge = 1e-4;  // heads that are never null, or null at once, don't make C singular
  const at::Tensor one = matrix_of(given), other = matrix_of(shuffled);
  const at::Tensor covariance = (covariance_of(one) + covariance_of(other)) / 2 + kRidge * at::eye(one.size(1), at::kDouble);
  NullContrast contrast;
  contrast.weights_ = numbers_of(at::linalg_solve(covariance, other.mean(0) - one.mean(0)));
  contrast.middle_ = numbers_of((one.mean(0) + other.mean(0)) / 2);
  return contrast;
}

double NullContrast::of(const std::vector<float>& null_rates) const {
  double sum = 0;
  for (size_t i = 0; i < weights_.size(); ++i) sum += weights_[i] * (static_cast<double>(null_rates[i]) - middle_[i]);
  return sum;
}

// --- ranking ---

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
