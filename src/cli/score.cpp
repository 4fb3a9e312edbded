#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "analysis/pair_scores.h"
#include "base/json_text.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/load_models.h"
#include "cli/output.h"
#include "cli/score_filter.h"
#include "cli/verb.h"
#include "model/weight_format.h"
#include "search/ensemble.h"
#include "search/translator.h"

namespace lacuna {
namespace {

struct ScoreFlags {
  std::vector<std::string> models;
  std::string src, tgt, output = "-", precision;
  bool tokens = false, json = false, normalize = false;
  int64_t batch_tokens = 3000;
  FilterFlags filter;
  CommonFlags common;

  void declare(CLI::App& app) {
    app.add_option("-m,--model", models, "Checkpoint or run folder; several, each after its own -m: an ensemble")
        ->required()
        ->allow_extra_args(false);
    app.add_option("--src", src, "Source text, plain, gzip or zstd")->required();
    app.add_option("--tgt", tgt,
                   "Its translations, line by line; an empty one has the probability of its end; of an empty line nan, but 0 for none")
        ->required();
    auto* file = app.add_option("-o,--output", output,
                                "File for the scores, a line for each pair: its log-probability; - is standard output (the default)");
    auto* mean = app.add_flag("--normalize", normalize, "Divide a sentence's log-probability by its number of tokens (with eos)");
    auto* by_token = app.add_flag("--tokens", tokens, "Behind each score a tab and the log-probabilities of the tokens (with eos)");
    auto* as_json = app.add_flag("--json", json, "One JSON object a line, with the tokens and their pieces")->excludes(by_token);
    app.add_option("--batch-tokens", batch_tokens, "Tokens scored at a time (default: 3000)")->check(whole_number_from(1));
    app.add_option("--precision", precision, "Of matrix products on the CPU: fp32 (the default), bf16x3, bf16, int8 or auto");
    declare_filter(app, {file, mean, by_token, as_json});
    common.declare_runtime(app);
    app.footer(
        "Every key under `model.attention` is a flag too, as far as the checkpoint has the parameters: --model.attention.cross softmax");
    app.allow_extras();
  }
  void declare_filter(CLI::App& app, const std::vector<CLI::Option*>& others) {
    auto* folder = app.add_option("--filter", filter.folder,
                                  "Rank the pairs and write the best and the others to this folder, with their scores and a report");
    for (auto* other : others) folder->excludes(other);
    app.add_option("--keep", filter.keep, "With --filter: share of the pairs to keep (default: 0.8)")
        ->check(real_number_between(0, 1))
        ->needs(folder);
    app.add_option(
           "--by", filter.by,
           "With --filter: null_rate (of cross attention), null_contrast (the null rates of its heads, weighed by what they are where "
           "targets are exchanged), log_prob (of a token) or both (the mean of the ranks by null_rate and log_prob). Default: "
           "null_rate where cross attention can attend to nothing, else log_prob")
        ->check(CLI::IsMember({"null_rate", "null_contrast", "log_prob", "both"}))
        ->needs(folder);
  }
  std::vector<std::string> overrides(const CLI::App& app) const {
    std::vector<std::string> words = overrides_without_search(app, "score");
    if (app.count("--precision") > 0) words.insert(words.end(), {"--translate.precision", precision});
    return words;
  }
};

/// A line: the sentence's log-probability (a token's mean with --normalize); with --tokens a tab and those of its tokens. Without a source
/// there are none: 0 where the target is empty too, as `lacuna translate` has it, else nan.
std::string format(const SentencePair& pair, const std::vector<float>& values, const Vocabulary& tgt, const ScoreFlags& flags) {
  double score = std::accumulate(values.begin(), values.end(), 0.0);
  if (flags.normalize && !values.empty()) score /= static_cast<double>(values.size());
  if (pair.src.empty() && !pair.tgt.empty()) score = std::numeric_limits<double>::quiet_NaN();  // JSON writes null
  if (flags.json) {
    nlohmann::ordered_json line = {{"log_prob", score}, {"tokens", nlohmann::json::array()}};
    for (size_t i = 0; i < values.size(); ++i) line["tokens"].push_back({{"piece", tgt.piece(pair.tgt[i])}, {"log_prob", values[i]}});
    return json_text(line) + "\n";
  }
  std::string line = fmt::format("{:.6f}", score);
  if (flags.tokens) line += fmt::format("\t{:.6f}", fmt::join(values, " "));
  return line + "\n";
}

using LogProbs = std::vector<std::vector<float>>;  // of each pair's target tokens

/// Several models vote on each token, as they do in search.
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

/// Longest side that is a sentence and that all models read.
int64_t most_tokens_of(const std::vector<LoadedModel>& models) {
  int64_t most = kMostSourceTokens;
  for (const LoadedModel& loaded : models)
    if (const int64_t limit = loaded.model->max_positions(); limit > 0) most = std::min(most, limit);
  return most;
}

/// Writes the scores of all pairs as they come.
int write_scores(const std::vector<LoadedModel>& models, const ScoreFlags& flags) {
  const Vocabularies& vocabularies = models.front().vocabularies;
  PairReader reader(flags.src, flags.tgt, vocabularies, most_tokens_of(models));
  Output output(flags.output, {flags.src, flags.tgt});
  for (std::vector<SentencePair> pairs; !(pairs = reader.next(kLinesAtATime)).empty();) {
    for (SentencePair& pair : pairs)
      if (!pair.src.empty() && pair.tgt.empty()) pair.tgt = {kEos};  // an empty translation of a sentence is one, too
    LogProbs log_probs(pairs.size());
    for (const auto& batch : batches_of(pairs, flags.batch_tokens)) {
      LogProbs of_batch = log_probs_of(models, batch);
      for (size_t b = 0; b < batch.size(); ++b) log_probs[static_cast<size_t>(batch[b] - pairs.data())] = std::move(of_batch[b]);
    }
    std::string written;
    for (size_t i = 0; i < pairs.size(); ++i) written += format(pairs[i], log_probs[i], *vocabularies.tgt, flags);
    if (!output.write(written)) return kBrokenPipe;
  }
  output.finish();
  return 0;
}

int run_score(const std::vector<std::string>& arguments) {
  CLI::App app("Log-probabilities, in nats, that models give to translations.", "lacuna score");
  ScoreFlags flags;
  flags.declare(app);
  if (!parse_command_line(app, arguments)) return 0;
  flags.common.apply_log_level();
  const std::string device = flags.common.prepared_device();
  for (const auto& [file, what] : {std::pair(flags.src, "source text"), std::pair(flags.tgt, "target text")})
    require_readable_file(file, what);
  if (app.count("--filter") > 0 && flags.filter.folder.empty())
    throw UsageError("--filter is empty; expected a folder to write to, or leave the flag out");
  if (!flags.filter.folder.empty() && flags.models.size() > 1)
    throw UsageError("--filter ranks a corpus by one model; " + std::to_string(flags.models.size()) + " are given with -m");
  const std::vector<std::string> words = flags.overrides(app);
  const std::vector<LoadedModel> models = load_models(flags.models, device, words);
  if (!flags.precision.empty()) {
    require_precision(models.front().options.translate.precision, device, words);
    for (const LoadedModel& loaded : models)
      loaded.model->round_to(weight_format_of(models.front().options.translate.precision, loaded.model->device()));
  }
  if (flags.filter.folder.empty()) return write_scores(models, flags);
  filter_corpus(models.front(), {flags.src, flags.tgt, flags.batch_tokens, flags.common.quiet}, flags.filter);
  return 0;
}

}  // namespace

Verb score_verb() {
  return {"score", "log-probabilities of given translations", run_score};
}

}  // namespace lacuna
