#include <map>

#include "analysis/aligner.h"
#include "analysis/symmetrise.h"
#include "base/log.h"
#include "base/progress_bar.h"
#include "checkpoint/checkpoint.h"
#include "cli/checkpoint_options.h"
#include "cli/command_line.h"
#include "cli/common_flags.h"
#include "cli/output.h"
#include "cli/verb.h"

namespace lacuna {
namespace {

struct AlignFlags {
  std::string model, reverse_model, src, tgt, output = "-", level = "word", step, symmetrise;
  std::string forward, backward;
  std::string dev_src, dev_tgt, dev_gold;
  int layer = -1, gold_base = -1;
  int64_t head = -1, batch_tokens = 3000;
  CommonFlags common;

  /// The files that models align or choose by.
  std::vector<std::string> texts_to_read() const {
    std::vector<std::string> files = {src, tgt};
    if (!dev_gold.empty()) files.insert(files.end(), {dev_src, dev_tgt, dev_gold});
    return files;
  }

  void declare(CLI::App& app) {
    app.add_option("-m,--model", model, "Checkpoint or run folder whose cross attention aligns");
    app.add_option("--reverse-model", reverse_model, "A model of the other direction, for --symmetrise");
    app.add_option("--src", src, "Source text, plain, gzip or zstd");
    app.add_option("--tgt", tgt, "Its translations, line by line");
    app.add_option("-o,--output", output, "File for the links; - is standard output (the default)");
    app.add_option("--level", level, "Links of words (the default) or of pieces: word or subword")
        ->check(CLI::IsMember({"word", "subword"}));
    app.add_option("--layer", layer, "Decoder layer, 0 the lowest (default: the last but one)")->check(whole_number_from(0));
    app.add_option("--head", head, "Head, from 0 (default: the average of all)")->check(whole_number_from(0));
    app.add_option("--step", step,
                   "Weights of the step that predicts a word, normal (the default), or of the one that has it as input, shifted")
        ->check(CLI::IsMember({"normal", "shifted"}));
    app.add_option("--dev-src", dev_src, "Source of a development set: layer, head and step are those with the lowest error rate on it");
    app.add_option("--dev-tgt", dev_tgt, "Its target");
    auto* gold = app.add_option("--dev-gold", dev_gold, "Its gold links");
    app.add_option("--gold-base", gold_base, "What the gold links count words from: 0 (the default) or 1")
        ->check(CLI::IsMember({0, 1}))
        ->needs(gold);
    app.add_option("--symmetrise", symmetrise, "Make one of two directions: intersection, union or grow-diag-final-and")
        ->check(CLI::IsMember({"intersection", "union", "grow-diag-final-and"}));
    app.add_option("--forward", forward, "Links to symmetrise, source-target, in place of models");
    app.add_option("--backward", backward, "Those of the other direction, target-source");
    app.add_option("--batch-tokens", batch_tokens, "Tokens aligned at a time (default: 3000)")->check(whole_number_from(1));
    common.declare_runtime(app);
    app.footer(
        "Every key under `model.attention` is a flag too, for both models, as far as they have the parameters:\n"
        "--model.attention.cross.sparsify always");
    app.allow_extras();
  }
};

Symmetrisation symmetrisation_of(const std::string& name) {
  if (name == "intersection") return Symmetrisation::kIntersection;
  return name == "union" ? Symmetrisation::kUnion : Symmetrisation::kGrowDiagFinalAnd;
}

/// Flags that say how models align.
constexpr const char* kOfModels[] = {"--src",     "--tgt",     "--level",    "--layer",     "--head",         "--step",
                                     "--dev-src", "--dev-tgt", "--dev-gold", "--gold-base", "--batch-tokens", "--device"};

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
    require(!flags.symmetrise.empty(), "--forward and --backward need --symmetrise");
    for (const std::string flag : kOfModels) require(app.count(flag) == 0, flag + " has no meaning with files of links");
    require(overrides.empty(), join(overrides, " ") + " has no meaning with files of links");
    return;
  }
  require(!flags.model.empty(), "-m MODEL is missing, or --forward and --backward with files of links");
  require(!flags.src.empty() && !flags.tgt.empty(), "--src and --tgt are missing: the text to align");
  require(flags.reverse_model.empty() == flags.symmetrise.empty(), "--reverse-model and --symmetrise go together");
  require(flags.reverse_model.empty() || flags.level == "word",
          "--reverse-model aligns words: models of two directions have pieces of their own");
  const int dev_flags = !flags.dev_src.empty() + !flags.dev_tgt.empty() + !flags.dev_gold.empty();
  require(dev_flags == 0 || dev_flags == 3, "--dev-src, --dev-tgt and --dev-gold go together");
  require(dev_flags == 0 || (flags.layer < 0 && flags.head < 0 && flags.step.empty()),
          "--layer, --head and --step are what a development set chooses");
}

/// One model, and which of its weights align.
struct Direction {
  std::string path;
  LoadedModel loaded;
  AlignmentChoice choice;
  std::unique_ptr<PairReader> reader;
  bool is_reverse;
  LongPairCount long_pairs = {};

  AnalyzedModel model() const { return {path, *loaded.model, loaded.vocabularies, loaded.options.translate.joiner}; }
  int64_t max_tokens() const { return longest_to_look_at(loaded.model->max_positions()); }

  /// None for a pair that is too long.
  std::vector<std::optional<Links>> next(const AlignFlags& flags) {
    const std::vector<SentencePair> pairs = reader->next(kLinesAtATime);
    const LinkUnit unit = flags.level == "word" ? LinkUnit::kWord : LinkUnit::kPiece;
    const std::vector<Links> links = align_pairs(model(), pairs, choice, unit, flags.batch_tokens);
    std::vector<std::optional<Links>> found(pairs.size());
    for (size_t i = 0; i < pairs.size(); ++i) {
      long_pairs.see(pairs[i]);
      if (!pairs[i].is_long) found[i] = is_reverse ? turned(links[i]) : links[i];
    }
    return found;
  }
};

/// What the development set's gold links count words from, which are joined as this model joins them; `known` are those by joiner.
int base_of_development_set(const AlignFlags& flags, const Options& options, std::map<std::string, int>& known) {
  const std::string& joiner = options.translate.joiner;
  if (!known.contains(joiner)) {
    const std::optional<int> given = flags.gold_base < 0 ? std::nullopt : std::optional(flags.gold_base);
    known[joiner] = checked_base_of_gold(flags.dev_gold, given, flags.dev_src, flags.dev_tgt, joiner);
  }
  return known[joiner];
}

AlignmentChoice choice_on_development_set(const AnalyzedModel& model, const AlignFlags& flags, int gold_base, bool is_reverse) {
  AnalysisSettings settings;
  settings.src = is_reverse ? flags.dev_tgt : flags.dev_src;
  settings.tgt = is_reverse ? flags.dev_src : flags.dev_tgt;
  settings.gold = flags.dev_gold;
  settings.is_gold_turned = is_reverse;
  settings.gold_base = gold_base;
  settings.only = {"alignment"};
  settings.explored = 0;
  settings.bootstrap_samples = 1;
  settings.batch_tokens = flags.batch_tokens;
  double error_rate = 0;
  const ModelAnalysis analysis = analyze_model(model, settings, [](int64_t) {});
  const AlignmentChoice best = best_choice(analysis, error_rate);
  if (error_rate >= 1)
    throw DataError(flags.dev_gold + ": no head of " + model.name + " finds any of these links between " + flags.dev_src + " and " +
                    flags.dev_tgt +
                    ", so none aligns best; expected gold links of this text. Are they of another, or of the other direction?");
  log_info("{}: {} aligns best, error rate {:.2f} % on the development set", model.name, text_of(best), 100 * error_rate);
  if (const LongPairCount& left_out = analysis.long_pairs; left_out.count > 0)
    log_warning("{}: development set: {}", model.name,
                left_out.message("are left out", analysis.pairs + analysis.empty_pairs + left_out.count, analysis.max_tokens));
  return best;
}

/// Throws UsageError for a layer or a head that the model at `path` has not.
void check_choice(const AlignFlags& flags, const std::string& path, const ModelOptions& options) {
  if (flags.layer >= options.decoder_layers)
    throw UsageError("--layer is " + std::to_string(flags.layer) + "; the decoder's layers are 0 to " +
                     std::to_string(options.decoder_layers - 1) + " in " + path);
  if (flags.head >= options.num_heads)
    throw UsageError("--head is " + std::to_string(flags.head) + "; the heads are 0 to " + std::to_string(options.num_heads - 1) + " in " +
                     path);
}

AlignmentChoice choice_by_flags(const ModelOptions& options, const AlignFlags& flags) {
  const auto layers = static_cast<int>(options.decoder_layers);
  const AlignmentChoice choice = {flags.layer >= 0 ? flags.layer : std::max(0, layers - 2),
                                  flags.head >= 0 ? std::optional(flags.head) : std::nullopt,
                                  flags.step == "shifted" ? AlignmentStep::kShifted : AlignmentStep::kNormal};
  if (flags.layer < 0 && flags.head < 0 && flags.step.empty())
    log_info("aligning by {}, as translate does; another may align better: --dev-gold finds it", text_of(choice));
  return choice;
}

/// What is said about one direction, checked before a model is loaded.
struct PlannedDirection {
  std::string path;
  bool is_reverse;
  int gold_base = 0;
};

PlannedDirection planned(const AlignFlags& flags, const std::vector<std::string>& overrides, bool is_reverse,
                         std::map<std::string, int>& gold_bases) {
  PlannedDirection plan = {is_reverse ? flags.reverse_model : flags.model, is_reverse};
  const Options options = options_of_checkpoint(plan.path, overrides);
  check_choice(flags, plan.path, options.model);
  if (!flags.dev_gold.empty()) plan.gold_base = base_of_development_set(flags, options, gold_bases);
  return plan;
}

Direction direction_of(const PlannedDirection& plan, const AlignFlags& flags, const std::string& device,
                       const std::vector<std::string>& overrides) {
  Direction direction = {plan.path, load_model(plan.path, device, overrides), {}, {}, plan.is_reverse};
  direction.choice = flags.dev_gold.empty() ? choice_by_flags(direction.loaded.options.model, flags)
                                            : choice_on_development_set(direction.model(), flags, plan.gold_base, plan.is_reverse);
  direction.reader = std::make_unique<PairReader>(plan.is_reverse ? flags.tgt : flags.src, plan.is_reverse ? flags.src : flags.tgt,
                                                  direction.loaded.vocabularies, direction.max_tokens(), LongPairs::kMark);
  return direction;
}

std::vector<Direction> directions_of(const AlignFlags& flags, const std::string& device, const std::vector<std::string>& overrides) {
  std::map<std::string, int> gold_bases;
  std::vector<PlannedDirection> plans = {planned(flags, overrides, /*is_reverse=*/false, gold_bases)};
  if (!flags.reverse_model.empty()) plans.push_back(planned(flags, overrides, /*is_reverse=*/true, gold_bases));
  std::vector<Direction> directions;
  directions.reserve(plans.size());
  for (const PlannedDirection& plan : plans) directions.push_back(direction_of(plan, flags, device, overrides));
  return directions;
}

/// The lines of these links; empty for a pair that is too long, be it for one of two models.
std::string written(const std::vector<std::optional<Links>>& links, const std::vector<std::optional<Links>>& other,
                    const std::string& symmetrisation) {
  std::string lines;
  for (size_t i = 0; i < links.size(); ++i) {
    const bool is_known = links[i] && (other.empty() || other[i]);
    if (is_known) lines += pharaoh(other.empty() ? *links[i] : symmetrise(*links[i], *other[i], symmetrisation_of(symmetrisation)));
    lines += "\n";
  }
  return lines;
}

int align_with_models(const AlignFlags& flags, const std::string& device, const std::vector<std::string>& overrides) {
  const int64_t total = count_pairs(flags.src, flags.tgt);
  Output output(flags.output, flags.texts_to_read());  // before the work that a development set takes
  std::vector<Direction> directions = directions_of(flags, device, overrides);
  LineProgress bar("aligning", total, flags.common.quiet || flags.output == "-");
  for (std::vector<std::optional<Links>> links, other; !(links = directions[0].next(flags)).empty();) {
    if (directions.size() > 1) other = directions[1].next(flags);
    if (!output.write(written(links, other, flags.symmetrise))) return kBrokenPipe;
    bar.add(static_cast<int64_t>(links.size()));
  }
  output.finish();
  for (const Direction& direction : directions)
    if (direction.long_pairs.count > 0)
      log_warning("{}: {}", direction.path, direction.long_pairs.message("get an empty line", total, direction.max_tokens()));
  return 0;
}

int symmetrise_files(const AlignFlags& flags) {
  LinkReader forward(flags.forward), backward(flags.backward);
  Output output(flags.output, {flags.forward, flags.backward});
  GoldLinks first, second;
  while (next_of_both(forward, first, backward, second)) {
    const Links links = symmetrise(first.possible, turned(second.possible), symmetrisation_of(flags.symmetrise));
    if (!output.write(pharaoh(links) + "\n")) return kBrokenPipe;
  }
  output.finish();
  return 0;
}

int run_align(const std::vector<std::string>& arguments) {
  CLI::App app("Word alignments (0-0 1-2, source-target, from 0) from a model's cross attention, or from two files of links.",
               "lacuna align");
  AlignFlags flags;
  flags.declare(app);
  if (!parse_command_line(app, arguments)) return 0;
  flags.common.apply_log_level();
  const std::vector<std::string> overrides = overrides_without_search(app, "align");
  check(flags, overrides, app);
  if (!flags.forward.empty()) return symmetrise_files(flags);
  const std::string device = flags.common.prepared_device();
  return align_with_models(flags, device, overrides);
}

}  // namespace

Verb align_verb() {
  return {"align", "word alignments from cross attention; symmetrisation of two directions", run_align};
}

}  // namespace lacuna
