#include <ATen/ATen.h>
#include <spdlog/fmt/fmt.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/load_models.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "data/corpus_reader.h"
#include "model/ragged_of.h"
#include "search/ensemble.h"

namespace lacuna {
namespace {

constexpr size_t kLinesAtATime = 2048;
constexpr int kBrokenPipe = 128 + SIGPIPE;

struct ScoreFlags {
  std::vector<std::string> models;
  std::string src, tgt, output = "-";
  bool json = false, normalize = false;
  int64_t batch_tokens = 3000;
  CommonFlags common;

  void declare(CLI::App& app) {
    app.add_option("-m,--model", models, "Checkpoint or run folder; several: an ensemble")->required();
    app.add_option("--src", src, "Source text, plain or gzip")->required();
    app.add_option("--tgt", tgt, "Its translations, line by line")->required();
    app.add_option("-o,--output", output, "File for the scores; - is standard output (the default)");
    app.add_flag("--normalize", normalize, "Divide a sentence's log-probability by its number of tokens (with eos)");
    app.add_flag("--json", json, "One JSON object a line, with the pieces");
    app.add_option("--batch-tokens", batch_tokens, "Tokens scored at a time (default: 3000)")->check(whole_number_from(1));
    common.declare_runtime(app);
    app.footer(
        "Every key under `model.attention` is a flag too, as far as the checkpoint has the parameters: --model.attention.cross softmax");
    app.allow_extras();
  }
  /// Of the configuration's keys, those of search have no meaning here.
  static std::vector<std::string> overrides(const CLI::App& app) {
    for (const std::string& word : app.remaining())
      if (word.starts_with("--translate")) throw UsageError(word + " has no meaning for score, which searches for nothing");
    return app.remaining();
  }
};

struct ScoredPair {
  std::vector<TokenId> src, tgt;  // with eos; empty if the line is empty
  std::vector<float> token_log_probs;
};

/// Fills in the log-probabilities of pairs that fit one batch; several models vote on each token, as they do in search.
void score_batch(const std::vector<LoadedModel>& models, const std::vector<ScoredPair*>& pairs) {
  std::vector<std::vector<TokenId>> sources, targets;
  for (const ScoredPair* pair : pairs) {
    sources.push_back(pair->src);
    targets.push_back(pair->tgt);
  }
  std::vector<Tensor> votes;  // (Tt) each
  for (const LoadedModel& loaded : models) {
    Transformer& model = *loaded.model;
    const Tensor log_probs = model.token_log_probs(ragged_of(sources, model.device()), ragged_of(targets, model.device()));
    votes.push_back(log_probs.to(at::kCPU, at::kFloat).contiguous());
  }
  const Tensor log_probs = votes.size() == 1 ? votes.front() : log_mean_exp(votes);
  const float* next = log_probs.const_data_ptr<float>();
  for (ScoredPair* pair : pairs) {
    pair->token_log_probs.assign(next, next + pair->tgt.size());
    next += pair->tgt.size();
  }
}

void score_all(const std::vector<LoadedModel>& models, std::vector<ScoredPair>& pairs, int64_t batch_tokens) {
  std::vector<ScoredPair*> batch;
  size_t tokens = 0;
  for (ScoredPair& pair : pairs) {
    if (pair.src.empty() || pair.tgt.empty()) continue;
    const size_t more = std::max(pair.src.size(), pair.tgt.size());
    if (!batch.empty() && tokens + more > static_cast<size_t>(batch_tokens)) {
      score_batch(models, std::exchange(batch, {}));
      tokens = 0;
    }
    batch.push_back(&pair);
    tokens += more;
  }
  if (!batch.empty()) score_batch(models, batch);
}

/// TSV: the sentence's log-probability (a token's mean with --normalize), then those of its tokens. A pair with an empty side has 0 and
/// none.
std::string format(const ScoredPair& pair, const Vocabulary& tgt, const ScoreFlags& flags) {
  const auto& values = pair.token_log_probs;
  double score = std::accumulate(values.begin(), values.end(), 0.0);
  if (flags.normalize && !values.empty()) score /= static_cast<double>(values.size());
  if (flags.json) {
    nlohmann::ordered_json line = {{"log_prob", score}, {"tokens", nlohmann::json::array()}};
    for (size_t i = 0; i < values.size(); ++i) line["tokens"].push_back({{"piece", tgt.piece(pair.tgt[i])}, {"log_prob", values[i]}});
    return line.dump() + "\n";
  }
  std::string line = fmt::format("{:.6f}\t", score);
  for (size_t i = 0; i < values.size(); ++i) line += fmt::format("{}{:.6f}", i > 0 ? " " : "", values[i]);
  return line + "\n";
}

std::vector<TokenId> ids_of(const Vocabulary& vocabulary, const std::string& line, int64_t limit, const std::string& place) {
  std::vector<TokenId> ids = vocabulary.encode(line);
  if (!ids.empty()) ids.push_back(kEos);
  if (limit > 0 && static_cast<int64_t>(ids.size()) > limit)
    throw DataError(place + ": has " + std::to_string(ids.size()) + " tokens; the model's table of positions holds " +
                    std::to_string(limit));
  return ids;
}

/// Pairs of the reader's next lines; fewer than kLinesAtATime: there are no more.
std::vector<ScoredPair> next_pairs(CorpusReader& reader, const Vocabularies& vocabularies, int64_t limit) {
  std::vector<ScoredPair> pairs;
  std::string src, tgt;
  while (pairs.size() < kLinesAtATime && reader.next(src, tgt))
    pairs.push_back(
        {ids_of(*vocabularies.src, src, limit, reader.src_place()), ids_of(*vocabularies.tgt, tgt, limit, reader.tgt_place()), {}});
  return pairs;
}

/// Longest sentence that all models read; 0 = no limit.
int64_t max_positions_of(const std::vector<LoadedModel>& models) {
  int64_t shortest = 0;
  for (const LoadedModel& loaded : models)
    if (const int64_t limit = loaded.model->max_positions(); limit > 0) shortest = shortest == 0 ? limit : std::min(shortest, limit);
  return shortest;
}

int run(const std::vector<std::string>& arguments) {
  CLI::App app("Log-probabilities, in nats, that models give to translations.", "lacuna score");
  ScoreFlags flags;
  flags.declare(app);
  if (!parse_command_line(app, arguments)) return 0;
  flags.common.apply_log_level();
  const std::string device = flags.common.device.empty() ? "cpu" : flags.common.device;
  require_device(device);
  use_threads(std::max<int64_t>(flags.common.threads, 0));
  CorpusReader reader({"", flags.src, flags.tgt, 1});
  Output output(flags.output);
  const std::vector<LoadedModel> models = load_models(flags.models, device, ScoreFlags::overrides(app));
  const Vocabularies& vocabularies = models.front().vocabularies;
  const int64_t limit = max_positions_of(models);
  const at::NoGradGuard no_gradients;
  for (bool more = true; more;) {
    std::vector<ScoredPair> pairs = next_pairs(reader, vocabularies, limit);
    more = pairs.size() == kLinesAtATime;
    score_all(models, pairs, flags.batch_tokens);
    std::string written;
    for (const ScoredPair& pair : pairs) written += format(pair, *vocabularies.tgt, flags);
    if (!output.write(written)) return kBrokenPipe;
  }
  output.finish();
  return 0;
}

}  // namespace

Verb score_verb() {
  return {"score", "log-probabilities of given translations", run};
}

}  // namespace lacuna
