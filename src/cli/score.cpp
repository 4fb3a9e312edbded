#include <ATen/ATen.h>
#include <spdlog/fmt/fmt.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <numeric>

#include "checkpoint/checkpoint.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "data/corpus_reader.h"
#include "model/ragged_of.h"

namespace lacuna {
namespace {

constexpr size_t kLinesAtATime = 2048;
constexpr int kBrokenPipe = 128 + SIGPIPE;

struct ScoreFlags {
  std::string model, src, tgt, output = "-";
  bool json = false, normalize = false;
  int64_t batch_tokens = 3000;
  CommonFlags common;
};

struct ScoredPair {
  std::vector<TokenId> src, tgt;  // with eos; empty if the line is empty
  std::vector<float> token_log_probs;
};

/// Fills in the log-probabilities of pairs [begin, end), which fit one batch.
void score_batch(Transformer& model, std::vector<ScoredPair*> pairs) {
  std::vector<std::vector<TokenId>> sources, targets;
  for (const ScoredPair* pair : pairs) {
    sources.push_back(pair->src);
    targets.push_back(pair->tgt);
  }
  const Tensor log_probs =
      model.token_log_probs(ragged_of(sources, model.device()), ragged_of(targets, model.device())).to(at::kCPU, at::kFloat).contiguous();
  const float* next = log_probs.const_data_ptr<float>();
  for (ScoredPair* pair : pairs) {
    pair->token_log_probs.assign(next, next + pair->tgt.size());
    next += pair->tgt.size();
  }
}

void score_all(Transformer& model, std::vector<ScoredPair>& pairs, int64_t batch_tokens) {
  std::vector<ScoredPair*> batch;
  size_t tokens = 0;
  for (ScoredPair& pair : pairs) {
    if (pair.src.empty() || pair.tgt.empty()) continue;
    const size_t more = std::max(pair.src.size(), pair.tgt.size());
    if (!batch.empty() && tokens + more > static_cast<size_t>(batch_tokens)) {
      score_batch(model, std::exchange(batch, {}));
      tokens = 0;
    }
    batch.push_back(&pair);
    tokens += more;
  }
  if (!batch.empty()) score_batch(model, batch);
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

int run(const std::vector<std::string>& arguments) {
  CLI::App app("Log-probabilities, in nats, that a model gives to translations.", "lacuna score");
  ScoreFlags flags;
  app.add_option("-m,--model", flags.model, "Checkpoint or run folder")->required();
  app.add_option("--src", flags.src, "Source text, plain or gzip")->required();
  app.add_option("--tgt", flags.tgt, "Its translations, line by line")->required();
  app.add_option("-o,--output", flags.output, "File for the scores; - is standard output (the default)");
  app.add_flag("--normalize", flags.normalize, "Divide a sentence's log-probability by its number of tokens (with eos)");
  app.add_flag("--json", flags.json, "One JSON object a line, with the pieces");
  app.add_option("--batch-tokens", flags.batch_tokens, "Tokens scored at a time (default: 3000)")->check(whole_number_from(1));
  flags.common.declare_runtime(app);
  if (!parse_command_line(app, arguments)) return 0;
  flags.common.apply_log_level();
  const std::string device = flags.common.device.empty() ? "cpu" : flags.common.device;
  require_device(device);
  use_threads(std::max<int64_t>(flags.common.threads, 0));
  CorpusReader reader({"", flags.src, flags.tgt, 1});
  Output output(flags.output);
  const LoadedModel loaded = load_model(flags.model, device);
  const at::NoGradGuard no_gradients;
  std::string src, tgt;
  for (bool more = true; more;) {
    std::vector<ScoredPair> pairs;
    while (pairs.size() < kLinesAtATime && (more = reader.next(src, tgt))) {
      const int64_t limit = loaded.model->max_positions();
      pairs.push_back({ids_of(*loaded.vocabularies.src, src, limit, reader.src_place()),
                       ids_of(*loaded.vocabularies.tgt, tgt, limit, reader.tgt_place()),
                       {}});
    }
    score_all(*loaded.model, pairs, flags.batch_tokens);
    std::string written;
    for (const ScoredPair& pair : pairs) written += format(pair, *loaded.vocabularies.tgt, flags);
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
