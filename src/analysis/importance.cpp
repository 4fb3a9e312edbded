#include "analysis/importance.h"

#include <algorithm>

#include "analysis/row_measures.h"
#include "analysis/weight_gatherer.h"
#include "base/ragged.h"

namespace lacuna {
namespace {

/// Returns the targets y_1..y_t for t from begin + 1 to end, all that p(y_t) depends on.
std::vector<std::vector<TokenId>> prefixes_of(const std::vector<TokenId>& tgt, size_t begin, size_t end) {
  std::vector<std::vector<TokenId>> prefixes;
  for (size_t t = begin; t < end; ++t) prefixes.emplace_back(tgt.begin(), tgt.begin() + static_cast<ptrdiff_t>(t) + 1);
  return prefixes;
}

/// Returns the number of prefixes from `begin` on that fit into a batch.
size_t end_of_chunk(size_t begin, size_t targets, size_t sources, int64_t batch_tokens) {
  size_t end = begin, tokens = 0;
  do {
    tokens += std::max(end + 1, sources);
    ++end;
  } while (end < targets && tokens + std::max(end + 1, sources) <= static_cast<size_t>(batch_tokens));
  return end;
}

/// memory [Ts, D] -> norms [prefixes, Ts] of the gradient of each prefix's last token's probability.
Tensor importance_of_last(Transformer& model, const Tensor& memory, const std::vector<std::vector<TokenId>>& prefixes) {
  const auto count = static_cast<int64_t>(prefixes.size()), sources = memory.size(0);
  const Tensor copies = memory.repeat({count, 1}).set_requires_grad(true);  // (prefixes * Ts, D)
  const std::vector<int32_t> lengths(prefixes.size(), static_cast<int32_t>(sources));
  const Ragged tgt = ragged_of(prefixes, model.device());
  const Ragged hidden = model.decode({copies, std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths))}, tgt, {});
  std::vector<int64_t> last;
  for (int64_t b = 0; b < count; ++b) last.push_back(tgt.shape->begin(b) + tgt.shape->length(b) - 1);
  const Tensor rows = at::tensor(last, at::kLong).to(model.device());
  Tensor logits = hidden.values.index_select(0, rows).matmul(model.output_weight().t());  // (prefixes, V)
  if (model.output_bias().defined()) logits = logits + model.output_bias();
  const Tensor targets = tgt.values.index_select(0, rows).unsqueeze(1);
  at::log_softmax(logits.to(at::kFloat), 1).gather(1, targets).exp().sum().backward();
  return copies.grad().view({count, sources, memory.size(1)}).norm(2, {2});
}

std::vector<double> doubles_of(const Tensor& row) {
  const Tensor values = row.to(at::kCPU, at::kDouble).contiguous();
  const double* const begin = values.const_data_ptr<double>();
  return {begin, begin + values.numel()};
}

/// Rows of one sentence summed over heads, for each target token: ranked as their mean is.
std::vector<std::vector<double>> sum_over_heads(const SiteWeights& weights, int64_t num_heads) {
  std::vector<std::vector<double>> sums;
  for (int64_t head = 0; head < num_heads; ++head) {
    const WeightMatrix matrix = weights.matrix(0, head);
    sums.resize(static_cast<size_t>(matrix.queries), std::vector<double>(static_cast<size_t>(matrix.keys), 0.0));
    for (int64_t t = 0; t < matrix.queries; ++t)
      for (int64_t i = 0; i < matrix.keys; ++i)
        sums[static_cast<size_t>(t)][static_cast<size_t>(i)] += static_cast<double>(matrix.row(t)[static_cast<size_t>(i)]);
  }
  return sums;
}

}  // namespace

Tensor gradient_importance(Transformer& model, const SentencePair& pair, int64_t batch_tokens) {
  for (Tensor& parameter : model.parameters()) parameter.set_requires_grad(false);
  Tensor memory;
  {
    const at::NoGradGuard no_gradients;
    memory = model.encode(ragged_of({pair.src}, model.device()), {}).values;
  }
  const at::AutoGradMode with_gradients(true);
  std::vector<Tensor> chunks;
  for (size_t begin = 0; begin < pair.tgt.size();) {
    const size_t end = end_of_chunk(begin, pair.tgt.size(), pair.src.size(), batch_tokens);
    chunks.push_back(importance_of_last(model, memory, prefixes_of(pair.tgt, begin, end)));
    begin = end;
  }
  return at::cat(chunks, 0).to(at::kCPU, at::kFloat);
}

void correlate_importance(Transformer& model, const SentencePair& pair, int64_t batch_tokens, bool with_mask,
                          std::vector<ImportanceCorrelation>& layers) {
  const Tensor importance = gradient_importance(model, pair, batch_tokens);
  std::vector<std::vector<double>> rows;
  for (int64_t t = 0; t < importance.size(0); ++t) rows.push_back(doubles_of(importance[t]));
  const auto correlate = [&](const SiteWeights& weights, int64_t num_heads, RankCorrelation& correlation) {
    const auto sums = sum_over_heads(weights, num_heads);
    for (size_t t = 0; t < rows.size(); ++t) correlation.add(kendall_tau_b(sums[t], rows[t]));
  };
  const auto observe = [&](const CallWeights& call) {
    ImportanceCorrelation& layer = layers[static_cast<size_t>(call.layer)];
    correlate(call.weights, call.num_heads, layer.attention);
    if (call.original != nullptr) correlate(*call.original, call.num_heads, layer.original);
    if (call.mask != nullptr) correlate(*call.mask, call.num_heads, layer.mask);
  };
  const RaggedPairs batch = ragged_pairs({&pair}, model.device());
  WeightGatherer gatherer(*batch.src.shape, *batch.tgt.shape, model.options().num_heads, with_mask, observe,
                          [](int, AttentionSite site) { return site == AttentionSite::kCross; });
  force_decode(model, batch, gatherer);
}

void RankCorrelation::add(std::optional<double> tau) {
  if (!tau) {
    ++undefined;
    return;
  }
  sum += *tau;
  ++rows;
}

std::optional<double> RankCorrelation::mean() const {
  if (rows == 0) return {};
  return sum / static_cast<double>(rows);
}

}  // namespace lacuna
