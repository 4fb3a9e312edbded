#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>

#include "ablation/ablation.h"
#include "ablation/tables.h"
#include "attention/registry.h"
#include "base/interrupt.h"
#include "checkpoint/run_folder.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/verb.h"
#include "run/requirements.h"

namespace lacuna {
namespace {

constexpr const char* kSummary =
    "Compares attention: trains, averages, translates and scores a model for each variant and seed, and makes one table.";

constexpr const char* kExplanation =
    R"(A variant is a type (rela), a type with options ("topk: {k: 4}"), a name for what stands under model.attention
("mine: {cross: {type: topk, k: 4}}"), a configuration file (configs/ablations/rela/leaky_relu.yaml), or a name that the section `variants` of
the configuration, or --variants, defines. Commas separate them:

  lacuna ablate -c base.yaml --attention 'softmax, topk: {k: 4}, rela' --seeds 1,2,3
  lacuna ablate -c configs/ablations/bundled.yaml

FOLDER gets a run folder VARIANT/seed_N for each, results.jsonl with a row as each ends, and table.md, table.tex, table.json, plot.svg. The
average of train.average_last checkpoints translates data.test (else the best one does). The same command again goes on where an interruption
came; what has ended is not repeated, what failed is tried again. Texts that any run lacks are named before the first begins. A table is of
runs that have the command's options and test set; others that the folder holds are named below it.

Every key of the configuration is a flag too, for all variants: --train.max_epochs 6)";

struct AblateFlags {
  std::string variants_file, folder;
  std::vector<std::string> attention, columns;
  std::vector<std::string> seeds;
  double max_seconds = 0;
  int64_t rounds = 3;
  bool list = false, dry_run = false;
  CommonFlags common;

  void declare(CLI::App& app) {
    common.declare_configuration(app);
    app.add_option("--attention", attention,
                   "Variants to compare, between commas. Others are compared with the first of the table: those of the configuration come "
                   "first, then "
                   "those that have run, then those named here")
        ->allow_extra_args(false);
    app.add_option("--variants", variants_file, "File of variants: {name: what stands under model.attention, ...}");
    app.add_option("--seeds", seeds,
                   "Seeds and ranges of seeds between commas, 1-3,7: each is a run of every variant; the configuration's unless given")
        ->delimiter(',');
    app.add_option("-o,--output", folder, "Folder of all runs and tables; the key `run` with _ablation behind it unless given");
    app.add_option("--max-seconds", max_seconds, "Seconds of training, at most, of each run: train.max_hours")
        ->check(real_number_between(0, 1e9))
        ->default_str("train.max_hours of the configuration");
    app.add_option("--rounds", rounds, "Times the test set is translated to measure the speed; 0 = not measured")
        ->check(whole_number_from(0));
    app.add_option("--columns", columns,
                   "Columns of table.md and table.tex, between commas: " + join(table_columns()) +
                       " (default: all in table.md, and in table.tex those that fit a page)")
        ->delimiter(',')
        ->check(CLI::IsMember(table_columns()));
    app.add_flag("--list", list, "Print the runs and how far each is, and end");
    app.add_flag("--dry-run", dry_run, "Check everything, print what would be done, and end");
    common.declare_runtime(app);
    app.footer(kExplanation);
  }

  AblationRequest request(const CLI::App& app) const {
    AblationRequest request = {
        .sources = common.sources(app), .variants_file = variants_file, .attention = "", .seeds = {}, .folder = folder};
    for (const std::string& text : seeds)
      for (const int64_t seed : number_ranges(text, "--seeds", 0)) request.seeds.push_back(seed);
    for (const std::string& text : attention) request.attention += (request.attention.empty() ? "" : ",") + text;
    if (max_seconds > 0) request.sources.overrides.push_back(fmt::format("--train.max_hours={}", max_seconds / 3600));
    if (std::set<int64_t>(request.seeds.begin(), request.seeds.end()).size() != request.seeds.size())
      throw UsageError("--seeds: a seed is there twice");
    return request;
  }

  std::vector<std::string> log_flags() const {
    return common.quiet ? std::vector<std::string>{"--quiet"} : std::vector<std::string>{"--log-level", common.log_level};
  }
};

std::string state_of(const PlannedRun& run, const ResultsFile& results) {
  const RunResult* row = results.find(run.variant, run.seed);
  if (row != nullptr && !row->is_ended()) return "failed: " + row->error;
  if (row != nullptr && row->fingerprint == run.fingerprint) return fmt::format("ended: {:.2f} BLEU", row->bleu.value_or(0));
  if (row != nullptr) return "ended, with other options";
  const std::string checkpoint = newest_checkpoint_of(run.options.run);
  return checkpoint.empty() ? "not begun" : "at " + std::filesystem::path(checkpoint).filename().string();
}

void print_states(const AblationPlan& plan, const ResultsFile& results) {
  size_t width = 0;
  for (const PlannedRun& run : plan.runs) width = std::max(width, run.variant.size());
  for (const PlannedRun& run : plan.runs)
    std::cout << fmt::format("{:<{}}  seed {:<6}  {}\n", run.variant, width, run.seed, state_of(run, results));
}

void print_intentions(const AblationPlan& plan, const ResultsFile& results) {
  for (const PlannedRun& run : plan.runs) {
    const std::string against = run.against.empty() ? "" : " against " + run.against;
    if (is_to_be_made(run, results))
      std::cout << fmt::format("{}, seed {}: would train {}, translate {} and score it{}\n", run.variant, run.seed, run.options.run,
                               plan.test_set.files().front().first, against);
    else
      std::cout << fmt::format("{}, seed {}: has ended\n", run.variant, run.seed);
  }
}

/// Throws, before the first training, what that of a run or its scoring would say of the texts, which all runs share.
void require_texts(const AblationPlan& plan) {
  const ResultsFile results(results_file(plan.folder));
  if (std::ranges::none_of(plan.runs, [&](const PlannedRun& run) { return is_to_be_made(run, results); })) return;
  DataOptions data = plan.shared.data;
  data.test = {plan.test_set};
  require_sets(data, plan.rules);
  require_tokenizer(find_sacrebleu(plan.shared.sacrebleu), data.tgt_lang);
}

int run_ablate(const std::vector<std::string>& arguments) {
  CommandLine app(kSummary, "lacuna ablate");
  AblateFlags flags;
  flags.declare(app);
  if (!app.read(arguments)) return 0;
  flags.common.apply_log_level();
  if (flags.common.help_options || flags.common.dump_config) {
    std::cout << (flags.common.help_options ? options_help() + attention_help() : to_yaml(shared_options(flags.common.sources(app))));
    return 0;
  }
  const AblationPlan plan = plan_ablation(flags.request(app));
  require_device(plan.shared.device);
  if (!flags.list) require_texts(plan);
  if (flags.list || flags.dry_run) {
    const ResultsFile results(results_file(plan.folder));
    flags.list ? print_states(plan, results) : print_intentions(plan, results);
    return 0;
  }
  require_single_process();
  handle_interrupts();
  return AblationRunner(plan, {.rounds = flags.rounds, .log_flags = flags.log_flags(), .columns = flags.columns}).run_all();
}

}  // namespace

Verb ablate_verb() {
  return {"ablate", "compare attention types: train, translate and score each; one table", run_ablate};
}

}  // namespace lacuna
