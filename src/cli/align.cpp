#include "analysis/align_text.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/shared_flags.h"
#include "cli/verb.h"

namespace lacuna {
namespace {

struct AlignFlags : AlignRequest {
  std::string forward, backward;
  CommonFlags common;

  void declare(CLI::App& app) {
    flags::add_model(app, model,
                     ". Its cross attention aligns; without one, words are aligned by how often they occur together in the text");
    app.add_option("--reverse-model", reverse_model, "A model of the other direction, for --symmetrize");
    flags::add_pair(app, src, tgt);
    flags::add_output(app, output, "File for the links");
    app.add_option("--level", level, "Links of words or of pieces")->check(CLI::IsMember({"word", "subword"}));
    app.add_option("--layer", layer, "Decoder layer, 0 the lowest; unless given, that of the guided head, or else the last but one")
        ->check(whole_number_from(0));
    app.add_option("--head", head, "Head, from 0; the guided one (train.guided_alignment) or else the average of all unless given")
        ->check(whole_number_from(0));
    app.add_option("--step", step,
                   "Weights of the step that predicts a word, normal, or of the one that has it as input, shifted; normal unless given")
        ->check(CLI::IsMember({"normal", "shifted"}));
    app.add_option("--dev-src", dev_src, "Source of a development set: layer, head and step are those with the lowest error rate on it");
    app.add_option("--dev-tgt", dev_tgt, "Target of the development set");
    auto* gold = app.add_option("--dev-gold", dev_gold, "Gold links of the development set");
    flags::add_base(app, "--gold-base", gold_base, "gold links")->needs(gold);
    app.add_option("--symmetrize,--symmetrise", symmetrize,
                   "Make one of two directions: intersection, union or grow-diag-final-and (without a model the default)")
        ->check(CLI::IsMember({"intersection", "union", "grow-diag-final-and"}));
    app.add_option("--forward", forward, "Links to symmetrize, source-target, in place of models");
    app.add_option("--backward", backward, "Links of the other direction, target-source");
    flags::add_batch_tokens(app, batch_tokens, "aligned");
    flags::add_on_error(app, bad_lines);
    common.declare_runtime(app);
    app.footer(
        "Every key under `model.attention` is a flag too, for both models, as far as they have the parameters:\n"
        "--model.attention.cross.sparsify always");
    app.allow_extras();
  }
};

/// Flags that say how models align.
constexpr const char* kOfModels[] = {"--src",     "--tgt",      "--level",     "--layer",        "--head",     "--step",  "--dev-src",
                                     "--dev-tgt", "--dev-gold", "--gold-base", "--batch-tokens", "--on-error", "--device"};

/// Flags that say how a model's attention aligns.
constexpr const char* kOfAttention[] = {"--reverse-model", "--level",    "--layer",     "--head",         "--step",  "--dev-src",
                                        "--dev-tgt",       "--dev-gold", "--gold-base", "--batch-tokens", "--device"};

/// Throws UsageError for flags that do not fit together.
void check(const AlignFlags& flags, const std::vector<std::string>& overrides, const CLI::App& app) {
  const bool has_files = !flags.forward.empty() || !flags.backward.empty();
  const auto require = [](bool holds, const std::string& message) {
    if (!holds) throw UsageError(message + "; see lacuna align --help");
  };
  for (const auto& [flag, value] : {std::pair("--dev-src", flags.dev_src), std::pair("--dev-tgt", flags.dev_tgt),
                                    std::pair("--dev-gold", flags.dev_gold), std::pair("--reverse-model", flags.reverse_model)})
    require(app.count(flag) == 0 || !value.empty(), std::string(flag) + " is empty; expected a path, or leave the flag out");
  if (has_files) {
    require(!flags.forward.empty() && !flags.backward.empty(), "--forward and --backward go together");
    require(flags.model.empty() && flags.reverse_model.empty(),
            "links come from files (--forward, --backward) or from models (-m), not from both");
    require(!flags.symmetrize.empty(), "--forward and --backward need --symmetrize");
    for (const std::string flag : kOfModels) require(app.count(flag) == 0, flag + " has no meaning with files of links");
    require(overrides.empty(), join(overrides, " ") + " has no meaning with files of links");
    return;
  }
  require(!flags.src.empty() && !flags.tgt.empty(),
          "--src and --tgt are missing: the text to align; or --forward and --backward with files of links");
  if (flags.model.empty()) {
    for (const std::string flag : kOfAttention) require(app.count(flag) == 0, flag + " has no meaning without a model: -m is missing");
    require(overrides.empty(), join(overrides, " ") + " has no meaning without a model: -m is missing");
    return;
  }
  require(flags.reverse_model.empty() == flags.symmetrize.empty(), "--reverse-model and --symmetrize go together");
  require(flags.reverse_model.empty() || flags.level == "word",
          "--reverse-model aligns words: models of two directions have pieces of their own");
  const int dev_flags = !flags.dev_src.empty() + !flags.dev_tgt.empty() + !flags.dev_gold.empty();
  require(dev_flags == 0 || dev_flags == 3, "--dev-src, --dev-tgt and --dev-gold go together");
  require(dev_flags == 0 || (!flags.layer && !flags.head && flags.step.empty()),
          "--layer, --head and --step are what a development set chooses");
}

int run_align(const std::vector<std::string>& arguments) {
  CommandLine app(
      "Word alignments (0-0 1-2, source-target, from 0) from a model's cross attention, from the text alone, or from two files of links.",
      "lacuna align");
  AlignFlags flags;
  flags.declare(app);
  if (!app.read(arguments)) return 0;
  flags.common.apply_log_level();
  flags.overrides = overrides_without_search(app, "align");
  check(flags, flags.overrides, app);
  bool is_read = true;
  if (!flags.forward.empty()) {
    is_read = symmetrize_files(flags.forward, flags.backward, flags.symmetrize, flags.output);
  } else {
    flags.device = flags.common.prepared_device();
    flags.shows_progress = !flags.common.quiet && flags.output != "-";
    const AlignedText done = flags.model.empty() ? align_by_counts(flags) : align_text(flags);
    is_read = done.is_read;
    if (is_read) flags::require_none_passed_over(done.bad_pairs, done.pairs);
  }
  return is_read ? 0 : kBrokenPipe;
}

}  // namespace

Verb align_verb() {
  return {"align", "word alignments from cross attention or from the text alone; symmetrization of two directions", run_align};
}

}  // namespace lacuna
