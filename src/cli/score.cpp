#include "analysis/filter_corpus.h"
#include "base/interrupt.h"
#include "base/output.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/part_flags.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"
#include "run/filter_parts.h"
#include "run/load_models.h"
#include "run/part_terms.h"
#include "run/score_text.h"
#include "run/text_parts.h"

namespace lacuna {
namespace {

struct ScoreFlags : ScoreRequest {
  std::vector<std::string> models;
  FilterFlags filter;
  PartFlags parts;
  flags::KeyFlags keys{option_help<TranslateOptions>("translate.")};
  CommonFlags common;

  void declare(CLI::App& app) {
    auto* model = flags::add_models(app, models, ": an ensemble");
    const auto [source, target] = flags::add_pair(app, src, tgt);
    source->required();
    target->required();
    flags::add_output(app, output, "File for the scores, a line for each pair: its log-probability");
    auto* mean = app.add_flag("--normalize", normalize, "Divide a sentence's log-probability by its number of tokens (with eos)");
    auto* by_token = app.add_flag("--tokens", tokens, "After each score, a tab and the log-probabilities of the tokens (with eos)");
    auto* as_json = app.add_flag("--json", json, "One JSON object a line, with the tokens and their pieces")->excludes(by_token);
    app.add_flag("--guard", guard, "In JSON, \"guard\": measures of hallucination, and which exceed the model's translate.guard_limits")
        ->needs(as_json);
    flags::add_batch_tokens(app, batch_tokens, "scored");
    keys.add(app, "--precision", "translate.precision")->default_str("fp32");
    flags::add_on_error(app, bad_lines);
    declare_filter(app, {mean, by_token, as_json});
    parts.declare(app, {model, source, target}, {});
    common.declare_runtime(app);
    app.footer(
        "Empty target: log-probability of </s>. Empty source: nan (0 if the target is empty too).\n\n"
        "Every key under `model.attention` is a flag too, as far as the checkpoint has the parameters: --model.attention.cross softmax");
    app.allow_extras();
  }
  void declare_filter(CLI::App& app, const std::vector<CLI::Option*>& others) {
    auto* folder = app.add_option("--filter", filter.folder,
                                  "Rank the pairs and write the best and the others to this folder, with their scores and a report; with "
                                  "--part-lines once all parts, of the folder -o, are there");
    for (auto* other : others) folder->excludes(other);
    app.add_option("--keep", filter.keep, "With --filter: share of the pairs to keep")->check(real_number_between(0, 1))->needs(folder);
    app.add_option(
           "--by", filter.by,
           "With --filter, what pairs are ranked by: null_rate of cross attention; null_contrast, a classifier on the null rates of each "
           "head "
           "that tells true pairs from ones with exchanged targets; log_prob of a token; both, the mean of the ranks by null_rate and "
           "log_prob. Unless given: null_rate where cross attention can attend to nothing, else log_prob")
        ->check(CLI::IsMember({"null_rate", "null_contrast", "log_prob", "both"}))
        ->needs(folder);
  }
  /// Throws UsageError for what does not go together, or cannot be read.
  void require_fit(const CLI::App& app) const {
    if (parts.are_given()) parts.require_files(output, {src, tgt});
    for (const auto& [file, what] : {std::pair(src, "source text"), std::pair(tgt, "target text")}) require_readable_file(file, what);
    if (app.count("--filter") == 0) return;
    if (filter.folder.empty()) throw UsageError("--filter is empty; expected a folder to write to, or leave the flag out");
    if (models.size() > 1)
      throw UsageError("--filter ranks a corpus by one model; " + std::to_string(models.size()) + " are given with -m");
    if (app.count("--output") > 0 && !parts.are_given())
      throw UsageError(
          "--filter writes its files to a folder of its own, and -o is for the parts of --part-lines; leave -o out, or give both");
  }
  FilterCorpus corpus() const { return {src, tgt, batch_tokens, common.quiet, bad_lines}; }
  std::vector<std::string> overrides(const CLI::App& app) const {
    std::vector<std::string> words = overrides_without_search(app, "score");
    const std::vector<std::string> given = keys.overrides();
    words.insert(words.end(), given.begin(), given.end());
    return words;
  }
};

int score_whole(const std::vector<LoadedModel>& models, const ScoreRequest& asked) {
  std::optional<PairReader> reader;
  open_pairs(reader, models, asked);
  Output output(asked.output, {asked.src, asked.tgt});
  const ScoredText done = score_text(*reader, output, models, asked);
  if (!done.is_read) return kBrokenPipe;
  output.finish();
  output.remove_parts();
  flags::require_none_passed_over(done.bad_pairs, done.pairs);
  return 0;
}

/// Scores a corpus as one of several workers, and ranks it, if so asked, once all parts are there.
void score_in_parts(const std::vector<LoadedModel>& models, const ScoreFlags& flags, Precision precision) {
  const bool is_filter = !flags.filter.folder.empty();
  const FilterCorpus corpus = flags.corpus();
  std::optional<FilterScorer> scorer;
  handle_interrupts();
  if (is_filter) scorer.emplace(models.front(), corpus, flags.filter);
  nlohmann::ordered_json terms = scoring_terms(models, flags, precision);
  if (is_filter)
    terms["filter"] = scorer->has_contrasts() ? "null rates, null contrasts, log-probabilities" : "null rates, log-probabilities";
  JobFolder job = JobFolder::make_or_join(flags.output, flags.parts.cut, terms, job_inputs({flags.src, flags.tgt}));
  if (!is_filter) {
    work_on_parts(job, *scoring_parts(models, flags));
    return;
  }
  const JobTotals totals = work_on(job, *filtering_parts(*scorer));
  filter_from_parts(job, corpus, flags.filter, *scorer, totals.bad_lines);
  flags::require_none_passed_over(totals.bad_lines, totals.lines);
}

int run_score(const std::vector<std::string>& arguments) {
  CommandLine app("Log-probabilities, in nats, that models give to translations.", "lacuna score");
  ScoreFlags flags;
  flags.declare(app);
  if (!app.read(arguments)) return 0;
  flags.common.apply_log_level();
  if (flags.parts.is_status) {
    PartFlags::print_status(flags.output, flags.json);
    return 0;
  }
  const std::string device = flags.common.prepared_device();
  flags.require_fit(app);
  const std::vector<std::string> words = flags.overrides(app);
  const bool is_rounded = app.count("--precision") > 0;
  const std::vector<LoadedModel> models =
      load_models(flags.models, device, words, is_rounded ? std::nullopt : std::optional(Precision::kFp32));
  if (is_rounded) require_precision(models.front().options.translate.precision, device, words);
  if (flags.parts.are_given()) {
    const Precision precision = is_rounded ? models.front().options.translate.precision : Precision::kFp32;
    score_in_parts(models, flags, precision);
    return 0;
  }
  if (flags.filter.folder.empty()) return score_whole(models, flags);
  const auto [pairs, bad_pairs] = filter_corpus(models.front(), flags.corpus(), flags.filter);
  flags::require_none_passed_over(bad_pairs, pairs);
  return 0;
}

}  // namespace

Verb score_verb() {
  return {"score", "log-probabilities of given translations", run_score};
}

}  // namespace lacuna
