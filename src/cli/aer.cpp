#include <spdlog/fmt/fmt.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "analysis/alignment_error.h"
#include "analysis/analysis_folder.h"
#include "base/error.h"
#include "base/spelling.h"
#include "cli/command_line.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"

namespace lacuna {
namespace {

struct AerFlags {
  std::string links, gold, src, tgt, joiner;
  std::optional<int> links_base, gold_base;
  int64_t num_samples = 1000;
  uint64_t seed = 1;
  bool json = false;
};

void declare(CLI::App& app, AerFlags& flags) {
  app.add_option("-i,--input", flags.links, "Links to score, a line a pair: 0-0 1-2, source-target")->required();
  app.add_option("--gold", flags.gold, "Gold links: 0-0 sure, 1?2 or 1p2 possible")->required();
  const auto [src, tgt] = flags::add_pair(app, flags.src, flags.tgt);
  src->needs(tgt);
  tgt->needs(src);
  app.add_option("--joiner", flags.joiner,
                 "What a piece of these texts ends with that the next one belongs to, such as @@: links are of whole words then, as align "
                 "writes them for a model with translate.joiner")
      ->needs(src);
  flags::add_base(app, "--input-base", flags.links_base, "links");
  flags::add_base(app, "--gold-base", flags.gold_base, "gold links");
  app.add_option("--bootstrap", flags.num_samples, "Resamples for the 95 % interval")->check(whole_number_from(1, 100000));
  app.add_option("--seed", flags.seed, "Seed of the resamples")->check(whole_number_from(0));
  app.add_flag("--json", flags.json, "Print one JSON object");
  app.footer("With --src and --tgt, links to words that a sentence does not have are refused.");
}

/// Throws UsageError for values that could not be.
void check_flags(const AerFlags& flags, const CLI::App& app) {
  for (const auto& [flag, value] : {std::pair("--src", flags.src), std::pair("--tgt", flags.tgt)})
    if (app.count(flag) > 0 && value.empty()) throw UsageError(std::string(flag) + " is empty; expected a path, or leave the flag out");
  if (const std::string trouble = joiner_error(flags.joiner); !trouble.empty())
    throw UsageError("--joiner is \"" + flags.joiner + "\"" + trouble);
}

AlignmentErrors score(const AerFlags& flags) {
  LinkReader links(flags.links, checked_base(flags.links, flags.links_base, flags.src, flags.tgt, "--input-base", flags.joiner));
  LinkReader gold(flags.gold, checked_base_of_gold(flags.gold, flags.gold_base, flags.src, flags.tgt, flags.joiner));
  AlignmentErrors errors(1, flags.num_samples, flags.seed);
  GoldLinks found, expected;
  while (next_of_both(links, found, gold, expected)) errors.add(links.line_number() - 1, {LinkCounts::of(found.possible, expected)});
  return errors;
}

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.2f}", 100 * *share) : "-";
}

void print_json(const AlignmentErrors& errors) {
  nlohmann::ordered_json json = alignment_error_json(errors, 0);
  json.update({{"sure", errors.total(0).sure}, {"sentences", errors.sentences()}});
  std::cout << json.dump(2) << "\n";
}

void print_text(const AlignmentErrors& errors) {
  const LinkCounts& total = errors.total(0);
  std::cout << "AER " << percent(total.error_rate());
  if (const auto interval = errors.interval(0))
    std::cout << fmt::format(" (95 % from {} to {})", percent(interval->low), percent(interval->high));
  std::cout << fmt::format(", precision {}, recall {}; {}, {}, {}\n", percent(total.precision()), percent(total.recall()),
                           counted(total.links, "link"), counted(total.sure, "sure gold link"), counted(errors.sentences(), "sentence"));
}

int run_aer(const std::vector<std::string>& arguments) {
  CommandLine app("Scores word alignments against gold links: alignment error rate in percent, 0 is perfect.", "lacuna aer");
  AerFlags flags;
  declare(app, flags);
  if (!app.read(arguments)) return 0;
  check_flags(flags, app);
  const AlignmentErrors errors = score(flags);
  if (flags.json)
    print_json(errors);
  else
    print_text(errors);
  return 0;
}

}  // namespace

Verb aer_verb() {
  return {"aer", "alignment error rate of word alignments against gold links", run_aer};
}

}  // namespace lacuna
