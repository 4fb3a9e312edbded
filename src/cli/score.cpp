#include <spdlog/fmt/fmt.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <numeric>

#include "analysis/pair_scores.h"
#include "checkpoint/checkpoint.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/output.h"
#include "cli/score_filter.h"
#include "cli/verb.h"

namespace lacuna {
namespace {

constexpr size_t kLinesAtATime = 2048;
constexpr int kBrokenPipe = 128 + SIGPIPE;

struct ScoreFlags {
  std::string model, src, tgt, output = "-";
  bool json = false, normalize = false;
  int64_t batch_tokens = 3000;
  FilterFlags filter;
  CommonFlags common;
};

/// TSV: the sentence's log-probability (a token's mean with --normalize), then those of its tokens. A pair with an empty side has 0 and
/// none.
std::string format(const SentencePair& pair, const std::vector<float>& values, const Vocabulary& tgt, const ScoreFlags& flags) {
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

/// Writes the scores of all pairs as they come.
int write_scores(const LoadedModel& loaded, const ScoreFlags& flags) {
  PairReader reader(flags.src, flags.tgt, loaded.vocabularies, loaded.model->max_positions());
  Output output(flags.output);
  for (std::vector<SentencePair> pairs; !(pairs = reader.next(kLinesAtATime)).empty();) {
    std::vector<std::vector<float>> log_probs(pairs.size());
    for (const auto& batch : batches_of(pairs, flags.batch_tokens)) {
      std::vector<std::vector<float>> of_batch = token_log_probs(*loaded.model, batch);
      for (size_t b = 0; b < batch.size(); ++b) log_probs[static_cast<size_t>(batch[b] - pairs.data())] = std::move(of_batch[b]);
    }
    std::string written;
    for (size_t i = 0; i < pairs.size(); ++i) written += format(pairs[i], log_probs[i], *loaded.vocabularies.tgt, flags);
    if (!output.write(written)) return kBrokenPipe;
  }
  output.finish();
  return 0;
}

void declare(CLI::App& app, ScoreFlags& flags) {
  app.add_option("-m,--model", flags.model, "Checkpoint or run folder")->required();
  app.add_option("--src", flags.src, "Source text, plain or gzip")->required();
  app.add_option("--tgt", flags.tgt, "Its translations, line by line")->required();
  auto* output = app.add_option("-o,--output", flags.output, "File for the scores; - is standard output (the default)");
  auto* normalize = app.add_flag("--normalize", flags.normalize, "Divide a sentence's log-probability by its number of tokens (with eos)");
  auto* json = app.add_flag("--json", flags.json, "One JSON object a line, with the pieces");
  app.add_option("--batch-tokens", flags.batch_tokens, "Tokens scored at a time (default: 3000)")->check(whole_number_from(1));
  auto* filter = app.add_option("--filter", flags.filter.folder,
                                "Rank the pairs and write the best and the others to this folder, with their scores and a report");
  for (auto* other : {output, normalize, json}) filter->excludes(other);
  app.add_option("--keep", flags.filter.keep, "With --filter: share of the pairs to keep (default: 0.8)")
      ->check(CLI::Range(0.0, 1.0))
      ->needs(filter);
  app.add_option("--by", flags.filter.by,
                 "With --filter: null_rate (of cross attention), log_prob (of a token) or both (the mean of the ranks). Default: null_rate "
                 "where cross attention can attend to nothing, else log_prob")
      ->check(CLI::IsMember({"null_rate", "log_prob", "both"}))
      ->needs(filter);
  flags.common.declare_runtime(app);
}

int run(const std::vector<std::string>& arguments) {
  CLI::App app("Log-probabilities, in nats, that a model gives to translations.", "lacuna score");
  ScoreFlags flags;
  declare(app, flags);
  if (!parse_command_line(app, arguments)) return 0;
  flags.common.apply_log_level();
  const std::string device = flags.common.device.empty() ? "cpu" : flags.common.device;
  require_device(device);
  use_threads(std::max<int64_t>(flags.common.threads, 0));
  for (const auto& [file, what] : {std::pair(flags.src, "source text"), std::pair(flags.tgt, "target text")})
    require_readable_file(file, what);
  const LoadedModel loaded = load_model(flags.model, device);
  if (flags.filter.folder.empty()) return write_scores(loaded, flags);
  filter_corpus(loaded, {flags.src, flags.tgt, flags.batch_tokens, flags.common.quiet}, flags.filter);
  return 0;
}

}  // namespace

Verb score_verb() {
  return {"score", "log-probabilities of given translations", run};
}

}  // namespace lacuna
