#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json_text.h"
#include "base/line_reader.h"
#include "base/log.h"
#include "base/spelling.h"
#include "cli/command_line.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"
#include "metrics/sacrebleu.h"
#include "text/writing_system.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

struct EvaluateOptions {
  std::vector<std::string> hypotheses = {"-"};
  std::vector<std::string> references;
  ScoreOptions scoring;
  int64_t num_samples = 1000;
  bool json = false, confidence = false;
  std::string sacrebleu;

  std::vector<std::filesystem::path> hypothesis_files() const { return {hypotheses.begin(), hypotheses.end()}; }
  std::vector<std::filesystem::path> reference_files() const { return {references.begin(), references.end()}; }
};

void declare(CLI::App& app, EvaluateOptions& options) {
  app.add_option("--hyp", options.hypotheses,
                 "Translations, one a line, detokenized, plain, gzip or zstd; - is standard input. Several files: each is "
                 "compared to the first by a paired bootstrap");
  app.add_option("--ref", options.references, "References, plain, gzip or zstd; several files: several references for each sentence")
      ->required();
  app.add_option("--tgt-lang", options.scoring.tgt_lang, "Code of the target language (de, zh, zho_Hans, ...): chooses BLEU's tokenizer");
  app.add_option("--metrics", options.scoring.metrics, "Comma-separated: bleu, chrf, ter")
      ->delimiter(',')
      ->check(CLI::IsMember({"bleu", "chrf", "ter"}));
  app.add_flag("--lowercase", options.scoring.lowercase, "BLEU and chrF ignore case");
  app.add_option("--tokenize", options.scoring.tokenizer, "BLEU's tokenizer, by sacreBLEU's name for it, in place of the language's own");
  app.add_option("--chrf-word-order", options.scoring.chrf_word_order, "chrF looks at n-grams of words up to this length; 2 = chrF++")
      ->check(whole_number_from(0, 16));
  app.add_option(
      "--joiner", options.scoring.joiner,
      "What a piece ends with that the next one belongs to, in translations and references that are in pieces: @@ of subword-nmt. "
      "Whole words are scored then");
  app.add_flag("--confidence", options.confidence,
               "95 % intervals by a bootstrap; where several files are compared, they are there anyway");
  app.add_option("--paired-bootstrap", options.num_samples, "Resamples of the bootstrap; of a single file, for --confidence")
      ->check(whole_number_from(2));
  app.add_flag("--json", options.json, "Print one JSON object");
  flags::add_on_error(app, options.scoring.bad_lines, "it is left out of all files");
  app.add_option("--sacrebleu", options.sacrebleu, "Command that starts sacreBLEU; it is looked for unless given");
}

/// A metric counts once, however often it is named.
void drop_repeated(std::vector<std::string>& metrics) {
  const std::set<std::string> names(metrics.begin(), metrics.end());
  metrics.assign(names.begin(), names.end());
}

void print_text(const CorpusScores& scores) {
  for (const auto& [key, score] : scores.all()) {
    const std::string interval = score.interval ? fmt::format(" ({:.2f} ± {:.2f})", *score.mean, *score.interval) : "";
    std::printf("%-7s %6.2f%s  %s\n", score.name.c_str(), score.score, interval.c_str(), score.signature.c_str());
    if (!score.details.empty()) std::printf("%16s%s\n", "", score.details.c_str());
  }
}

void print_json(const EvaluateOptions& options, const CorpusScores& scores) {
  ordered_json report = {{"hypotheses", options.hypotheses.front()}, {"references", options.references}, {"lines", scores.num_lines}};
  if (scores.bad_lines > 0) report["bad_lines"] = scores.bad_lines;
  report["tokenizer"] = scores.tokenizer;
  if (!options.scoring.joiner.empty()) report["joiner"] = options.scoring.joiner;
  for (const auto& [key, score] : scores.all()) {
    report["scores"][key] = {{"name", score.name}, {"score", score.score}, {"signature", score.signature}};
    if (!score.details.empty()) report["scores"][key]["details"] = score.details;
    if (score.interval) report["scores"][key].update({{"mean", *score.mean}, {"interval", *score.interval}});
  }
  std::cout << json_text(report, 2) << '\n';
}

void print_json(const EvaluateOptions& options, const PairedComparison& comparison) {
  ordered_json report = {{"references", options.references}, {"samples", options.num_samples}};
  if (comparison.bad_lines > 0) report["bad_lines"] = comparison.bad_lines;
  for (const auto& [key, signature] : comparison.signatures) report["signatures"][key] = signature;
  for (const PairedSystem& system : comparison.systems) {
    ordered_json entry = {{"hypotheses", system.hypotheses.string()}};
    for (const auto& [key, score] : system.scores) {
      entry["scores"][key] = {{"score", score.score}, {"mean", score.mean}, {"interval", score.interval}};
      if (score.p_value) entry["scores"][key]["p_value"] = *score.p_value;
    }
    report["systems"].push_back(std::move(entry));
  }
  std::cout << json_text(report, 2) << '\n';
}

void score_one(EvaluateOptions options, const Scorer& scorer) {
  if (options.confidence) options.scoring.confidence_samples = options.num_samples;
  const CorpusScores scores = score_files(scorer, options.hypotheses.front(), options.reference_files(), options.scoring);
  std::cerr << printable(scores.notes);
  if (options.json)
    print_json(options, scores);
  else
    print_text(scores);
  flags::require_none_passed_over(scores.bad_lines, scores.num_lines + scores.bad_lines);
}

void compare_several(const EvaluateOptions& options, const Scorer& scorer) {
  const PairedComparison comparison =
      paired_bootstrap(scorer, options.hypothesis_files(), options.reference_files(), options.num_samples, options.scoring);
  if (options.json)
    print_json(options, comparison);
  else
    std::cout << comparison.report;
  flags::require_none_passed_over(comparison.bad_lines, comparison.num_lines + comparison.bad_lines);
}

/// Returns the first lines of a file, but for those that are too long, of which whoever scores it will speak.
std::vector<std::string> first_lines(const std::string& file) {
  constexpr size_t kLinesToSee = 1000;
  LineReader reader(file);
  std::vector<std::string> lines;
  for (std::string line; lines.size() < kLinesToSee;) {
    try {
      if (!reader.next(line)) break;
      lines.push_back(line);
    } catch (const LineError&) {
      continue;
    }
  }
  return lines;
}

/// Throws UsageError where BLEU would take sentences for words, as the language is not said.
void require_language(const EvaluateOptions& options) {
  const bool has_bleu = std::ranges::find(options.scoring.metrics, "bleu") != options.scoring.metrics.end();
  if (!has_bleu || !options.scoring.tgt_lang.empty() || !options.scoring.tokenizer.empty()) return;
  for (const std::string& reference : options.references) {
    if (reference == "-" || !std::filesystem::is_regular_file(reference)) continue;  // read once, or not there: said by whoever reads it
    if (const std::string languages = languages_without_spaces(first_lines(reference)); !languages.empty())
      throw UsageError("--ref is " + reference + ", which has no spaces between words; expected --tgt-lang " + languages +
                       " for BLEU's tokenizer, or --tokenize with the name of one (13a for words between spaces)");
  }
}

/// Warns of TER where it takes sentences for words.
void warn_of_ter(const ScoreOptions& scoring) {
  if (std::ranges::find(scoring.metrics, "ter") != scoring.metrics.end() && bleu_tokenizer({.tgt_lang = scoring.tgt_lang}) == "char")
    log_warning("TER counts words between spaces, which {} does not have: look at BLEU, which counts characters, or chrF",
                scoring.tgt_lang);
}

int run_evaluate(const std::vector<std::string>& arguments) {
  CommandLine app("Scores translations against references: BLEU, chrF and TER by sacreBLEU, with their signatures.", "lacuna evaluate");
  EvaluateOptions options;
  declare(app, options);
  if (!app.read(arguments)) return 0;
  drop_repeated(options.scoring.metrics);
  if (const std::string trouble = joiner_error(options.scoring.joiner); !trouble.empty())
    throw UsageError("--joiner is \"" + options.scoring.joiner + "\"" + trouble);
  if (const std::string trouble = language_code_error(options.scoring.tgt_lang); !trouble.empty())
    throw UsageError("--tgt-lang is \"" + options.scoring.tgt_lang + "\"" + trouble);
  if (app.count("--paired-bootstrap") > 0 && options.hypotheses.size() == 1 && !options.confidence)
    throw UsageError("--paired-bootstrap changes nothing for a single --hyp: add another to compare with, or --confidence for intervals");
  require_language(options);
  warn_of_ter(options.scoring);
  const Scorer scorer = find_sacrebleu(options.sacrebleu);
  try {
    if (options.hypotheses.size() == 1)
      score_one(options, scorer);
    else
      compare_several(options, scorer);
  } catch (const LineError& error) {
    throw LineError(error.kind(), error.what() + std::string(kHowToSkip));
  }
  return 0;
}

}  // namespace

Verb evaluate_verb() {
  return {"evaluate", "score translations against references: BLEU, chrF and TER by sacreBLEU", run_evaluate};
}

}  // namespace lacuna
