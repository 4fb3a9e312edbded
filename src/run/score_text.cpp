#include "run/score_text.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "analysis/pair_scores.h"
#include "analysis/weight_gatherer.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/json_text.h"
#include "run/translate_text.h"
#include "search/ensemble.h"
#include "search/guard.h"
#include "search/translator.h"

namespace lacuna {
namespace {

/// What the models say of a pair's target.
struct ScoredPair {
  std::vector<float> log_probs;         ///< of the tokens
  std::vector<AlignmentRow> attention;  ///< of the tokens, averaged over heads and models; none if it was not looked at
};

nlohmann::ordered_json guard_of(const SentencePair& pair, const ScoredPair& scored, const GuardLimits& limits) {
  if (pair.src.empty()) return nullptr;
  return guard_json(judge({pair.src, pair.tgt, scored.log_probs, scored.attention}, limits));
}

/// Formats a line: the sentence's log-probability (the mean of its tokens if `normalize`); with `tokens` a tab and the tokens' own. Without
/// a source it is 0 if the target is empty too, as `lacuna translate` has it, else nan.
std::string format(const SentencePair& pair, const ScoredPair& scored, const LoadedModel& model, const ScoreRequest& asked) {
  const std::vector<float>& values = scored.log_probs;
  double score = std::accumulate(values.begin(), values.end(), 0.0);
  if (asked.normalize && !values.empty()) score /= static_cast<double>(values.size());
  if (pair.src.empty() && !pair.tgt.empty()) score = std::numeric_limits<double>::quiet_NaN();  // JSON writes null
  if (asked.json) {
    nlohmann::ordered_json line = {{"log_prob", score}, {"tokens", nlohmann::json::array()}};
    for (size_t i = 0; i < values.size(); ++i)
      line["tokens"].push_back({{"piece", model.vocabularies.tgt->piece(pair.tgt[i])}, {"log_prob", values[i]}});
    if (asked.guard) line["guard"] = guard_of(pair, scored, model.options.translate.guard_limits);
    return json_text(line) + "\n";
  }
  std::string line = fmt::format("{:.6f}", score);
  if (asked.tokens) line += fmt::format("\t{:.6f}", fmt::join(values, " "));
  return line + "\n";
}

using ScoredPairs = std::vector<ScoredPair>;
using Batch = std::vector<const SentencePair*>;

/// Returns the weights of each target token over the source, averaged over heads.
std::vector<AlignmentRow> rows_over_heads(const CallWeights& call, int64_t sentence) {
  const WeightMatrix shape = call.weights.matrix(sentence, 0);
  std::vector<AlignmentRow> rows;
  for (int64_t query = 0; query < shape.queries; ++query) {
    std::vector<float> mean(static_cast<size_t>(shape.keys), 0);
    for (int64_t head = 0; head < call.num_heads; ++head) {
      const std::span<const float> row = call.weights.matrix(sentence, head).row(query);
      for (size_t key = 0; key < row.size(); ++key)
        if (!std::isnan(row[key])) mean[key] += row[key] / static_cast<float>(call.num_heads);
    }
    rows.push_back(std::make_shared<const std::vector<float>>(std::move(mean)));
  }
  return rows;
}

/// Returns the mean of several models' rows, as search takes it.
std::vector<AlignmentRow> mean_of(const std::vector<std::vector<AlignmentRow>>& models) {
  std::vector<AlignmentRow> means;
  for (size_t query = 0; query < models.front().size(); ++query) {
    std::vector<float> mean(models.front()[query]->size(), 0);
    for (const std::vector<AlignmentRow>& rows : models)
      for (size_t key = 0; key < mean.size(); ++key) mean[key] += (*rows[query])[key] / static_cast<float>(models.size());
    means.push_back(std::make_shared<const std::vector<float>>(std::move(mean)));
  }
  return means;
}

/// True if all sides are short enough for weights to be kept.
bool can_be_looked_at(const Batch& batch) {
  return std::all_of(batch.begin(), batch.end(),
                     [](const SentencePair* pair) { return std::max(std::ssize(pair->src), std::ssize(pair->tgt)) <= kMostToLookAt; });
}

/// Scores a batch by one model; `layer` is the decoder layer whose cross attention is looked at, or -1.
ScoredPairs scores_of(Transformer& model, const Batch& batch, int layer) {
  ScoredPairs scored(batch.size());
  const auto observe = [&](const CallWeights& call) {
    for (size_t b = 0; b < batch.size(); ++b) scored[b].attention = rows_over_heads(call, static_cast<int64_t>(b));
  };
  const RaggedPairs shapes = ragged_pairs(batch, at::kCPU);
  const auto wanted = [layer](int of_call, AttentionSite site) { return of_call == layer && site == AttentionSite::kCross; };
  WeightGatherer gatherer(*shapes.src.shape, *shapes.tgt.shape, model.options().num_heads, false, observe, wanted);
  std::vector<std::vector<float>> log_probs = token_log_probs(model, batch, layer < 0 ? nullptr : &gatherer);
  for (size_t b = 0; b < batch.size(); ++b) scored[b].log_probs = std::move(log_probs[b]);
  return scored;
}

/// Scores a batch by one model, or by several that vote on each token, as they do in search.
ScoredPairs scores_of(const std::vector<LoadedModel>& models, const Batch& batch, int layer) {
  if (models.size() == 1) return scores_of(*models.front().model, batch, layer);
  std::vector<ScoredPairs> votes;
  votes.reserve(models.size());
  for (const LoadedModel& loaded : models) votes.push_back(scores_of(*loaded.model, batch, layer));
  ScoredPairs result(batch.size());
  for (size_t b = 0; b < batch.size(); ++b) {
    std::vector<Tensor> log_probs;
    std::vector<std::vector<AlignmentRow>> attention;
    for (ScoredPairs& of_model : votes) {
      log_probs.push_back(at::tensor(of_model[b].log_probs));
      attention.push_back(std::move(of_model[b].attention));
    }
    const Tensor mean = log_mean_exp(log_probs).contiguous();
    result[b] = {{mean.const_data_ptr<float>(), mean.const_data_ptr<float>() + mean.numel()}, mean_of(attention)};
  }
  return result;
}

/// Returns the layer that `lacuna translate` aligns by and guards.
int alignment_layer_of(const std::vector<LoadedModel>& models) {
  int64_t layers = models.front().options.model.decoder_layers;
  for (const LoadedModel& loaded : models) layers = std::min(layers, loaded.options.model.decoder_layers);
  return static_cast<int>(std::max<int64_t>(0, layers - 2));
}

/// Returns the most tokens of a side that is a sentence and that all models can read.
int64_t most_tokens_of(const std::vector<LoadedModel>& models) {
  int64_t most = kMostSourceTokens;
  for (const LoadedModel& loaded : models)
    if (const int64_t limit = loaded.model->max_positions(); limit > 0) most = std::min(most, limit);
  return most;
}

/// The next pairs to score, and what ends reading behind them.
struct PairWindow {
  std::vector<SentencePair> pairs;
  bool more = true;
  std::exception_ptr end;
};

PairWindow next_window(PairReader& reader, size_t most_pairs) {
  PairWindow window;
  try {
    while (window.more && window.pairs.size() < most_pairs) {
      std::vector<SentencePair> next = reader.next(1);
      window.more = !next.empty();
      if (window.more) window.pairs.push_back(std::move(next.front()));
    }
  } catch (const Error&) {
    window.end = std::current_exception();
    window.more = false;
  }
  for (SentencePair& pair : window.pairs)
    if (!pair.src.empty() && pair.tgt.empty()) pair.tgt = {kEos};  // an empty translation of a sentence is one, too
  return window;
}

/// Returns the lines for the pairs of a window; one for a pair that was passed over is empty, or in JSON its error. `layer` is the decoder
/// layer whose cross attention the guard looks at, or -1.
std::string scored(const PairWindow& window, const std::vector<LoadedModel>& models, const ScoreRequest& asked, int layer) {
  ScoredPairs scores(window.pairs.size());
  for (const auto& batch : batches_of(window.pairs, asked.batch_tokens)) {
    stop_if_interrupted("scoring");
    ScoredPairs of_batch = scores_of(models, batch, can_be_looked_at(batch) ? layer : -1);
    for (size_t b = 0; b < batch.size(); ++b) scores[static_cast<size_t>(batch[b] - window.pairs.data())] = std::move(of_batch[b]);
  }
  std::string written;
  for (size_t i = 0; i < window.pairs.size(); ++i) {
    const SentencePair& pair = window.pairs[i];
    if (pair.error.empty())
      written += format(pair, scores[i], models.front(), asked);
    else
      written += (asked.json ? json_text({{"error", pair.error}}) : "") + "\n";
  }
  return written;
}

}  // namespace

void open_pairs(std::optional<PairReader>& reader, const std::vector<LoadedModel>& models, const ScoreRequest& asked) {
  reader.emplace(asked.src, asked.tgt, models.front().vocabularies, most_tokens_of(models), LongPairs::kRefuse, asked.bad_lines);
}

ScoredText score_text(PairReader& reader, Output& output, const std::vector<LoadedModel>& models, const ScoreRequest& asked) {
  ScoredText done;
  const int layer = asked.guard ? alignment_layer_of(models) : -1;
  const auto pairs_left = [&] { return asked.most_pairs.value_or(std::numeric_limits<int64_t>::max()) - done.pairs; };
  try {
    for (bool more = true; more && pairs_left() > 0;) {
      if (asked.look) asked.look();
      const PairWindow window = next_window(reader, static_cast<size_t>(std::min<int64_t>(kLinesAtATime, pairs_left())));
      more = window.more;
      done.is_read = output.write(scored(window, models, asked, layer));
      if (!done.is_read) return done;
      done.pairs += std::ssize(window.pairs);
      done.bad_pairs += std::ranges::count_if(window.pairs, [](const SentencePair& pair) { return !pair.error.empty(); });
      if (window.end) std::rethrow_exception(window.end);
    }
  } catch (...) {
    if (!asked.most_pairs) output.keep_partial_of(done.pairs);
    throw;
  }
  return done;
}

}  // namespace lacuna
