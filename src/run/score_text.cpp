#include "run/score_text.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "analysis/pair_scores.h"
#include "base/json_text.h"
#include "base/output.h"
#include "search/ensemble.h"
#include "search/translator.h"

namespace lacuna {
namespace {

/// Formats a line: the sentence's log-probability (the mean of its tokens if `normalize`); with `tokens` a tab and the tokens' own. Without
/// a source it is 0 if the target is empty too, as `lacuna translate` has it, else nan.
std::string format(const SentencePair& pair, const std::vector<float>& values, const Vocabulary& tgt, const ScoreRequest& asked) {
  double score = std::accumulate(values.begin(), values.end(), 0.0);
  if (asked.normalize && !values.empty()) score /= static_cast<double>(values.size());
  if (pair.src.empty() && !pair.tgt.empty()) score = std::numeric_limits<double>::quiet_NaN();  // JSON writes null
  if (asked.json) {
    nlohmann::ordered_json line = {{"log_prob", score}, {"tokens", nlohmann::json::array()}};
    for (size_t i = 0; i < values.size(); ++i) line["tokens"].push_back({{"piece", tgt.piece(pair.tgt[i])}, {"log_prob", values[i]}});
    return json_text(line) + "\n";
  }
  std::string line = fmt::format("{:.6f}", score);
  if (asked.tokens) line += fmt::format("\t{:.6f}", fmt::join(values, " "));
  return line + "\n";
}

using LogProbs = std::vector<std::vector<float>>;  // of each pair's target tokens

/// Returns the log-probabilities of one model, or of several that vote on each token, as they do in search.
LogProbs log_probs_of(const std::vector<LoadedModel>& models, const std::vector<const SentencePair*>& batch) {
  if (models.size() == 1) return token_log_probs(*models.front().model, batch);
  std::vector<std::vector<Tensor>> votes(batch.size());  // of each pair, each model's
  for (const LoadedModel& loaded : models) {
    const LogProbs of_model = token_log_probs(*loaded.model, batch);
    for (size_t b = 0; b < batch.size(); ++b) votes[b].push_back(at::tensor(of_model[b]));
  }
  LogProbs result;
  for (const std::vector<Tensor>& of_pair : votes) {
    const Tensor mean = log_mean_exp(of_pair).contiguous();
    result.emplace_back(mean.const_data_ptr<float>(), mean.const_data_ptr<float>() + mean.numel());
  }
  return result;
}

/// Returns the most tokens of a side that is a sentence and that all models can read.
int64_t most_tokens_of(const std::vector<LoadedModel>& models) {
  int64_t most = kMostSourceTokens;
  for (const LoadedModel& loaded : models)
    if (const int64_t limit = loaded.model->max_positions(); limit > 0) most = std::min(most, limit);
  return most;
}

}  // namespace

bool score_text(const std::vector<LoadedModel>& models, const ScoreRequest& asked) {
  const Vocabularies& vocabularies = models.front().vocabularies;
  PairReader reader(asked.src, asked.tgt, vocabularies, most_tokens_of(models));
  Output output(asked.output, {asked.src, asked.tgt});
  for (std::vector<SentencePair> pairs; !(pairs = reader.next(kLinesAtATime)).empty();) {
    for (SentencePair& pair : pairs)
      if (!pair.src.empty() && pair.tgt.empty()) pair.tgt = {kEos};  // an empty translation of a sentence is one, too
    LogProbs log_probs(pairs.size());
    for (const auto& batch : batches_of(pairs, asked.batch_tokens)) {
      LogProbs of_batch = log_probs_of(models, batch);
      for (size_t b = 0; b < batch.size(); ++b) log_probs[static_cast<size_t>(batch[b] - pairs.data())] = std::move(of_batch[b]);
    }
    std::string written;
    for (size_t i = 0; i < pairs.size(); ++i) written += format(pairs[i], log_probs[i], *vocabularies.tgt, asked);
    if (!output.write(written)) return false;
  }
  output.finish();
  return true;
}

}  // namespace lacuna
