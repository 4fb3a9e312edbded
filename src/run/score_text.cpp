#include "run/score_text.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "analysis/pair_scores.h"
#include "base/error.h"
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

/// The next pairs to score, and what ends reading behind them.
struct PairWindow {
  std::vector<SentencePair> pairs;
  bool more = true;
  std::exception_ptr end;
};

PairWindow next_window(PairReader& reader) {
  PairWindow window;
  try {
    while (window.more && window.pairs.size() < kLinesAtATime) {
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

/// Returns the lines for the pairs of a window; one for a pair that was passed over is empty, or in JSON its error.
std::string scored(const PairWindow& window, const std::vector<LoadedModel>& models, const ScoreRequest& asked) {
  LogProbs log_probs(window.pairs.size());
  for (const auto& batch : batches_of(window.pairs, asked.batch_tokens)) {
    LogProbs of_batch = log_probs_of(models, batch);
    for (size_t b = 0; b < batch.size(); ++b) log_probs[static_cast<size_t>(batch[b] - window.pairs.data())] = std::move(of_batch[b]);
  }
  std::string written;
  for (size_t i = 0; i < window.pairs.size(); ++i) {
    const SentencePair& pair = window.pairs[i];
    if (pair.error.empty())
      written += format(pair, log_probs[i], *models.front().vocabularies.tgt, asked);
    else
      written += (asked.json ? json_text({{"error", pair.error}}) : "") + "\n";
  }
  return written;
}

}  // namespace

ScoredText score_text(const std::vector<LoadedModel>& models, const ScoreRequest& asked) {
  PairReader reader(asked.src, asked.tgt, models.front().vocabularies, most_tokens_of(models), LongPairs::kRefuse, asked.bad_lines);
  Output output(asked.output, {asked.src, asked.tgt});
  ScoredText done;
  try {
    for (bool more = true; more;) {
      const PairWindow window = next_window(reader);
      more = window.more;
      done.is_read = output.write(scored(window, models, asked));
      if (!done.is_read) return done;
      done.pairs += std::ssize(window.pairs);
      done.bad_pairs += std::ranges::count_if(window.pairs, [](const SentencePair& pair) { return !pair.error.empty(); });
      if (window.end) std::rethrow_exception(window.end);
    }
  } catch (...) {
    output.keep_partial_of(done.pairs);
    throw;
  }
  output.finish();
  return done;
}

}  // namespace lacuna
