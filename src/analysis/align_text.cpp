#include "analysis/align_text.h"

#include <algorithm>
#include <map>
#include <memory>

#include "analysis/links.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "base/progress_bar.h"
#include "checkpoint/checkpoint.h"

namespace lacuna {
namespace {

/// "layer 2, head 1, shifted".
std::string choice_text(const AlignmentChoice& choice) {
  return "layer " + std::to_string(choice.layer) + ", " + (choice.head ? "head " + std::to_string(*choice.head) : "average of heads") +
         ", " + name_of(choice.step);
}

/// Returns the choice with the lowest error rate in an analysis with alignment, and sets `error_rate` to that rate.
AlignmentChoice best_choice(const ModelAnalysis& analysis, double& error_rate) {
  AlignmentChoice best;
  error_rate = 2;
  for (int layer = 0; layer < analysis.decoder_layers; ++layer) {
    for (int64_t head = 0; head <= analysis.num_heads; ++head) {
      for (const AlignmentStep step : kAlignmentSteps) {
        const double rate = analysis.alignment->total(analysis.system_of(layer, head, step)).error_rate().value_or(1);
        if (rate >= error_rate) continue;
        error_rate = rate;
        best = {layer, head == analysis.num_heads ? std::nullopt : std::optional(head), step};
      }
    }
  }
  return best;
}

/// One model, and which of its weights align.
struct Direction {
  std::string path;
  LoadedModel loaded;
  AlignmentChoice choice;
  std::unique_ptr<PairReader> reader;
  bool is_reverse;
  LongPairCount long_pairs = {};
  int64_t bad_pairs = 0;

  AnalyzedModel model() const { return {path, *loaded.model, loaded.vocabularies, loaded.options.translate.joiner}; }
  int64_t max_tokens() const { return longest_to_look_at(loaded.model->max_positions()); }

  /// Aligns the next pairs. A pair that is too long has no links.
  std::vector<std::optional<Links>> next(const AlignRequest& asked) {
    const std::vector<SentencePair> pairs = reader->next(kLinesAtATime);
    const LinkUnit unit = asked.level == "word" ? LinkUnit::kWord : LinkUnit::kPiece;
    const std::vector<Links> links = align_pairs(model(), pairs, choice, unit, asked.batch_tokens);
    std::vector<std::optional<Links>> found(pairs.size());
    for (size_t i = 0; i < pairs.size(); ++i) {
      long_pairs.see(pairs[i]);
      bad_pairs += pairs[i].error.empty() ? 0 : 1;
      if (!pairs[i].is_long) found[i] = is_reverse ? turned(links[i]) : links[i];
    }
    return found;
  }
};

/// Returns the first number of a word in the development set's gold links, by the model's joiner; `known` keeps those found.
int base_of_development_set(const AlignRequest& asked, const Options& options, std::map<std::string, int>& known) {
  const std::string& joiner = options.translate.joiner;
  if (!known.contains(joiner)) {
    known[joiner] = checked_base_of_gold(asked.dev_gold, asked.gold_base, asked.dev_src, asked.dev_tgt, joiner);
  }
  return known[joiner];
}

AlignmentChoice choice_on_development_set(const AnalyzedModel& model, const AlignRequest& asked, int gold_base, bool is_reverse) {
  AnalysisSettings settings;
  settings.src = is_reverse ? asked.dev_tgt : asked.dev_src;
  settings.tgt = is_reverse ? asked.dev_src : asked.dev_tgt;
  settings.gold = asked.dev_gold;
  settings.is_gold_turned = is_reverse;
  settings.gold_base = gold_base;
  settings.only = {"alignment"};
  settings.explored = 0;
  settings.bootstrap_samples = 1;
  settings.batch_tokens = asked.batch_tokens;
  double error_rate = 0;
  const ModelAnalysis analysis = analyze_model(model, settings, [](int64_t) {});
  const AlignmentChoice best = best_choice(analysis, error_rate);
  if (error_rate >= 1)
    throw DataError(asked.dev_gold + ": no head of " + model.name + " finds any of these links between " + asked.dev_src + " and " +
                    asked.dev_tgt +
                    ", so none aligns best; expected gold links of this text. Are they of another, or of the other direction?");
  log_info("{}: {} aligns best, error rate {:.2f} % on the development set", model.name, choice_text(best), 100 * error_rate);
  if (const LongPairCount& left_out = analysis.long_pairs; left_out.count > 0)
    log_warning("{}: development set: {}", model.name,
                left_out.message(left_out.count == 1 ? "is left out" : "are left out",
                                 analysis.pairs + analysis.empty_pairs + left_out.count, analysis.max_tokens));
  return best;
}

/// Throws UsageError for a layer or a head that the model at `path` has not.
void check_choice(const AlignRequest& asked, const std::string& path, const ModelOptions& options) {
  if (asked.layer && *asked.layer >= options.decoder_layers)
    throw UsageError("--layer is " + std::to_string(*asked.layer) + "; the decoder's layers are 0 to " +
                     std::to_string(options.decoder_layers - 1) + " in " + path);
  if (asked.head && *asked.head >= options.num_heads)
    throw UsageError("--head is " + std::to_string(*asked.head) + "; the heads are 0 to " + std::to_string(options.num_heads - 1) + " in " +
                     path);
}

AlignmentChoice choice_by_flags(const Options& options, const AlignRequest& asked) {
  const AlignmentSource usual = options.alignment_source();
  AlignmentChoice choice = {asked.layer.value_or(usual.layer), asked.head,
                            asked.step == "shifted" ? AlignmentStep::kShifted : AlignmentStep::kNormal};
  if (asked.layer || asked.head) return choice;
  if (usual.head >= 0) choice.head = usual.head;
  if (asked.step.empty())
    log_info("aligning by {}, as translate does{}", choice_text(choice),
             usual.head >= 0 ? ": links guided it in training" : "; another may align better: --dev-gold finds it");
  return choice;
}

/// One direction as it was asked for, checked before a model is loaded.
struct PlannedDirection {
  std::string path;
  bool is_reverse;
  int gold_base = 0;
};

PlannedDirection planned(const AlignRequest& asked, bool is_reverse, std::map<std::string, int>& gold_bases) {
  PlannedDirection plan = {is_reverse ? asked.reverse_model : asked.model, is_reverse};
  const Options options = options_of_checkpoint(plan.path, asked.overrides);
  check_choice(asked, plan.path, options.model);
  if (!asked.dev_gold.empty()) plan.gold_base = base_of_development_set(asked, options, gold_bases);
  return plan;
}

Direction direction_of(const PlannedDirection& plan, const AlignRequest& asked) {
  Direction direction = {plan.path, load_model(plan.path, asked.device, asked.overrides), {}, {}, plan.is_reverse};
  direction.choice = asked.dev_gold.empty() ? choice_by_flags(direction.loaded.options, asked)
                                            : choice_on_development_set(direction.model(), asked, plan.gold_base, plan.is_reverse);
  direction.reader = std::make_unique<PairReader>(plan.is_reverse ? asked.tgt : asked.src, plan.is_reverse ? asked.src : asked.tgt,
                                                  direction.loaded.vocabularies, direction.max_tokens(), LongPairs::kMark, asked.bad_lines);
  return direction;
}

std::vector<Direction> directions_of(const AlignRequest& asked) {
  std::map<std::string, int> gold_bases;
  std::vector<PlannedDirection> plans = {planned(asked, /*is_reverse=*/false, gold_bases)};
  if (!asked.reverse_model.empty()) plans.push_back(planned(asked, /*is_reverse=*/true, gold_bases));
  std::vector<Direction> directions;
  directions.reserve(plans.size());
  for (const PlannedDirection& plan : plans) directions.push_back(direction_of(plan, asked));
  return directions;
}

/// Returns the lines of these links; a line is empty if its pair is too long for a model.
std::string written(const std::vector<std::optional<Links>>& links, const std::vector<std::optional<Links>>& other,
                    const std::string& symmetrization) {
  std::string lines;
  for (size_t i = 0; i < links.size(); ++i) {
    const bool is_known = links[i] && (other.empty() || other[i]);
    if (is_known) lines += pharaoh(other.empty() ? *links[i] : symmetrize(*links[i], *other[i], symmetrization_of(symmetrization)));
    lines += '\n';
  }
  return lines;
}

}  // namespace

std::vector<std::string> AlignRequest::texts_to_read() const {
  std::vector<std::string> files = {src, tgt};
  if (!dev_gold.empty()) files.insert(files.end(), {dev_src, dev_tgt, dev_gold});
  return files;
}

AlignedText align_text(const AlignRequest& asked) {
  const int64_t total = count_pairs({.src = asked.src, .tgt = asked.tgt}, asked.bad_lines, kHowToSkip);
  Output output(asked.output, asked.texts_to_read());  // before the work that a development set takes
  std::vector<Direction> directions = directions_of(asked);
  LineProgress bar("aligning", total, !asked.shows_progress);
  for (std::vector<std::optional<Links>> links, other; !(links = directions[0].next(asked)).empty();) {
    if (directions.size() > 1) other = directions[1].next(asked);
    if (!output.write(written(links, other, asked.symmetrize))) return {.is_read = false};
    bar.add(static_cast<int64_t>(links.size()));
  }
  output.finish();
  for (const Direction& direction : directions)
    if (direction.long_pairs.count > 0)
      log_warning("{}: {}", direction.path,
                  direction.long_pairs.message(direction.long_pairs.count == 1 ? "gets an empty line" : "get an empty line", total,
                                               direction.max_tokens()));
  return {.pairs = total, .bad_pairs = directions[0].bad_pairs};
}

bool symmetrize_files(const std::string& forward, const std::string& backward, const std::string& symmetrization, const std::string& file) {
  LinkReader first(forward), second(backward);
  Output output(file, {forward, backward});
  GoldLinks links, turned_links;
  while (next_of_both(first, links, second, turned_links)) {
    const Links both = symmetrize(links.possible, turned(turned_links.possible), symmetrization_of(symmetrization));
    if (!output.write(pharaoh(both) + "\n")) return false;
  }
  output.finish();
  return true;
}

std::vector<Links> align_pairs(const AnalyzedModel& analyzed, const std::vector<SentencePair>& pairs, const AlignmentChoice& choice,
                               LinkUnit unit, int64_t batch_tokens) {
  Transformer& model = analyzed.model;
  std::vector<Links> links(pairs.size());
  const auto wanted = [&](int layer, AttentionSite site) { return layer == choice.layer && site == AttentionSite::kCross; };
  for (const auto& batch : batches_of(pairs, batch_tokens)) {
    const auto observe = [&](const CallWeights& call) {
      for (size_t b = 0; b < batch.size(); ++b) {
        const AlignmentUnits units =
            unit == LinkUnit::kWord ? word_units(*batch[b], analyzed.vocabularies, analyzed.joiner) : piece_units(*batch[b]);
        const std::vector<UnitWeights> weights = unit_weights_of_heads(call, static_cast<int64_t>(b), units, choice.step);
        const auto chosen = static_cast<size_t>(choice.head.value_or(call.num_heads));
        links[static_cast<size_t>(batch[b] - pairs.data())] = weights[chosen].links();
      }
    };
    const RaggedPairs ragged = ragged_pairs(batch, model.device());
    WeightGatherer gatherer(*ragged.src.shape, *ragged.tgt.shape, model.options().num_heads, false, observe, wanted);
    force_decode(model, ragged, gatherer);
  }
  return links;
}

}  // namespace lacuna
