#include "analysis/pair_scores.h"

#include <algorithm>
#include <numeric>

#include "analysis/place_measures.h"
#include "attention/registry.h"

namespace lacuna {

std::vector<std::vector<float>> token_log_probs(Transformer& model, const std::vector<const SentencePair*>& pairs, AttentionProbe* probe) {
  const RaggedPairs batch = ragged_pairs(pairs, model.device());
  ForwardContext context;
  context.probe = probe;
  const Tensor log_probs = model.token_log_probs(batch.src, batch.tgt, context).to(at::kCPU, at::kFloat).contiguous();
  const float* next = log_probs.const_data_ptr<float>();
  std::vector<std::vector<float>> all;
  for (const SentencePair* pair : pairs) {
    all.emplace_back(next, next + pair->tgt.size());
    next += pair->tgt.size();
  }
  return all;
}

std::vector<PairScore> score_pairs(Transformer& model, const std::vector<SentencePair>& pairs, int64_t batch_tokens) {
  std::vector<PairScore> scores(pairs.size());
  for (const auto& batch : batches_of(pairs, batch_tokens)) {
    std::vector<HeadSums> cross(batch.size());  // of all heads and layers
    const auto observe = [&](const CallWeights& call) {
      const std::vector<PlaceSums> sums = measure_sentences(call, {.divergence = false});
      for (size_t b = 0; b < cross.size(); ++b) cross[b].add(sums[b].pooled());
    };
    const RaggedPairs shapes = ragged_pairs(batch, at::kCPU);
    WeightGatherer gatherer(*shapes.src.shape, *shapes.tgt.shape, model.options().num_heads, false, observe,
                            [](int, AttentionSite site) { return site == AttentionSite::kCross; });
    const std::vector<std::vector<float>> log_probs = token_log_probs(model, batch, &gatherer);
    for (size_t b = 0; b < batch.size(); ++b) {
      const double sum = std::accumulate(log_probs[b].begin(), log_probs[b].end(), 0.0);
      PairScore& score = scores[static_cast<size_t>(batch[b] - pairs.data())];
      score = {static_cast<float>(cross[b].null_rate()), static_cast<float>(sum / static_cast<double>(log_probs[b].size())), true};
    }
  }
  return scores;
}

bool has_null_rows(const ModelOptions& options) {
  const AttentionPlan plan = resolve_attention(options.attention, options.encoder_layers, options.decoder_layers, options.num_heads);
  return std::any_of(plan.cross.begin(), plan.cross.end(), [](const AttentionChoice& choice) {
    return !choice.type->entry().info.rows_sum_to_one && choice.type->entry().is_sparse(choice.type->options());
  });
}

}  // namespace lacuna
