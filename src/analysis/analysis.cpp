#include "analysis/analysis.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "analysis/links.h"
#include "attention/registry.h"
#include "base/error.h"
#include "base/random.h"
#include "base/spelling.h"
#include "config/on_bad_line.h"

namespace lacuna {
namespace {

constexpr size_t kPairsAtATime = 2048;

std::vector<PlaceAnalysis> places_of(const ModelOptions& options) {
  const AttentionPlan plan = resolve_attention(options);
  std::vector<PlaceAnalysis> places;
  const auto add = [&](AttentionSite site, const std::vector<AttentionChoice>& layers) {
    for (const AttentionChoice& choice : layers) {
      const int layer = static_cast<int>(&choice - layers.data());
      const bool is_rectified = !choice.type->entry().info.rows_sum_to_one;
      places.push_back({site, layer, choice.type->name(), is_rectified, !choice.type->is_row_map(), {}, {}, {}, {}});
    }
  };
  add(AttentionSite::kEncoderSelf, plan.encoder_self);
  add(AttentionSite::kDecoderSelf, plan.decoder_self);
  add(AttentionSite::kCross, plan.cross);
  return places;
}

/// Shuffles targets so that no pair keeps its own, deterministically for a seed.
std::vector<SentencePair> with_shuffled_targets(const std::vector<SentencePair>& pairs, uint64_t seed) {
  std::vector<SentencePair> shuffled;
  for (const SentencePair& pair : pairs)
    if (!pair.is_left_out()) shuffled.push_back(pair);
  if (shuffled.size() < 2) return {};
  RandomStream random(random_key(seed, RandomUse::kShuffle, static_cast<uint64_t>(shuffled.front().line), 0));
  std::vector<size_t> order(shuffled.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.next_below(i + 1)]);
  const std::vector<SentencePair> given = shuffled;
  for (size_t i = 0; i < order.size(); ++i) {  // around the circle of the drawn order
    const SentencePair& other = given[order[(i + 1) % order.size()]];
    shuffled[order[i]].tgt = other.tgt;
    shuffled[order[i]].tgt_text = other.tgt_text;
  }
  return shuffled;
}

/// One pass over the corpus.
class Pass {
 public:
  Pass(const AnalyzedModel& model, const AnalysisSettings& settings, const std::function<void(int64_t)>& progress)
      : model_(model.model), vocabularies_(model.vocabularies), joiner_(model.joiner), settings_(settings), progress_(progress) {
    const ModelOptions& options = model_.options();
    result_.name = model.name;
    result_.num_heads = options.num_heads;
    result_.decoder_layers = options.decoder_layers;
    result_.max_tokens = longest_to_look_at(model_.max_positions());
    result_.places = places_of(options);
    for (const MissingMeasure& one : missing_measures(options, settings)) result_.notes.push_back(one.note());
    for (const PlaceAnalysis& place : result_.places) shows_mask_ = shows_mask_ || place.shows_mask;
    result_.importance.resize(static_cast<size_t>(options.decoder_layers));
    const auto systems = static_cast<size_t>(options.decoder_layers * (options.num_heads + 1) * 2);
    if (!settings.gold.empty() && settings.wants("alignment"))
      result_.alignment.emplace(systems, settings.bootstrap_samples, settings.seed);
  }

  ModelAnalysis run() {
    PairReader reader(settings_.src, settings_.tgt, vocabularies_, result_.max_tokens, LongPairs::kMark, settings_.bad_lines);
    std::optional<LinkReader> gold;
    if (result_.alignment) gold.emplace(settings_.gold, settings_.gold_base);
    for (std::vector<SentencePair> pairs; !(pairs = reader.next(kPairsAtATime)).empty();) {
      read_gold(gold, pairs);
      for (const auto& batch : batches_of(pairs, settings_.batch_tokens)) {
        decode(batch);
        progress_(static_cast<int64_t>(batch.size()));
      }
      if (settings_.shuffle_references) decode_shuffled(pairs);
      measure_importance(pairs);
      for (const SentencePair& pair : pairs) {
        result_.empty_pairs += pair.is_empty();
        result_.bad_pairs += !pair.error.empty();
        result_.long_pairs.see(pair);
      }
    }
    if (owed_importance_ > 0 && spare_) add_importance_of(*spare_);
    check_result();
    return std::move(result_);
  }

 private:
  using BatchPairs = std::vector<const SentencePair*>;

  struct Gold {
    GoldLinks links;
    int64_t sentence = 0;  ///< number of the pair among those that are not bad: what a bootstrap draws by
  };

  void read_gold(std::optional<LinkReader>& reader, const std::vector<SentencePair>& pairs) {
    if (!reader) return;
    first_line_ = pairs.front().line;
    gold_.assign(pairs.size(), {});
    for (size_t i = 0; i < pairs.size(); ++i) {
      gold_[i].sentence = num_sentences_;
      num_sentences_ += pairs[i].error.empty() ? 1 : 0;
      GoldLinks& links = gold_[i].links;
      reader->next(links);
      if (settings_.is_gold_turned) links = {turned(links.sure), turned(links.possible)};
    }
  }

  const Gold& gold_of(const SentencePair& pair) const { return gold_[static_cast<size_t>(pair.line - first_line_)]; }

  /// Decodes the pairs with forced targets; calls `observe` for every attention call.
  void show(const BatchPairs& pairs, const WeightGatherer::Observer& observe, bool is_shuffled) {
    const RaggedPairs batch = ragged_pairs(pairs, model_.device());
    WeightGatherer gatherer(*batch.src.shape, *batch.tgt.shape, result_.num_heads, shows_mask_ && !is_shuffled, observe);
    force_decode(model_, batch, gatherer);
    if (is_shuffled) return;
    result_.src_tokens += batch.src.shape->num_tokens();
    result_.tgt_tokens += batch.tgt.shape->num_tokens();
    for (const auto& number : gatherer.numbers()) {
      const RaggedShape& queries = number.site == AttentionSite::kEncoderSelf ? *batch.src.shape : *batch.tgt.shape;
      place(number.layer, number.site).numbers[number.name].add(number.values, static_cast<double>(queries.num_tokens()));
    }
  }

  void decode(const BatchPairs& pairs) {
    std::vector<std::vector<RoundedMap>> maps = room_for_maps(pairs);
    std::vector<AlignmentUnits> units;
    std::vector<std::vector<LinkCounts>> counts;
    if (result_.alignment) {
      for (const SentencePair* pair : pairs) units.push_back(word_units(*pair, vocabularies_, joiner_));
      counts.assign(pairs.size(), std::vector<LinkCounts>(result_.alignment->num_systems()));
    }
    const auto observe = [&](const CallWeights& call) {
      PlaceAnalysis& seen = place(call.layer, call.site);
      if (settings_.wants_rows() || settings_.wants("diversity"))
        for (const PlaceSums& sums : measure_sentences(call, {settings_.wants("diversity"), seen.is_rectified})) seen.sums.add(sums);
      if (call.original != nullptr && settings_.wants(kMaskEffect))
        for (int64_t b = 0; b < call.num_sentences; ++b) seen.mask_effect.add(mask_effect_of(call, b));
      if (result_.alignment && call.site == AttentionSite::kCross) align(call, pairs, units, counts);
      explore(call, maps);
      save(call, pairs);
    };
    show(pairs, observe, /*is_shuffled=*/false);
    for (size_t b = 0; b < counts.size(); ++b) result_.alignment->add(gold_of(*pairs[b]).sentence, counts[b]);
    for (size_t b = 0; b < maps.size(); ++b) {
      const std::optional<GoldLinks> gold = result_.alignment ? std::optional(gold_of(*pairs[b]).links) : std::nullopt;
      result_.explored.add(*pairs[b], vocabularies_, joiner_, maps[b], gold);
    }
    result_.pairs += static_cast<int64_t>(pairs.size());
  }

  void align(const CallWeights& call, const BatchPairs& pairs, const std::vector<AlignmentUnits>& units,
             std::vector<std::vector<LinkCounts>>& counts) const {
    at::parallel_for(0, call.num_sentences, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const auto i = static_cast<size_t>(b);
        for (const AlignmentStep step : kAlignmentSteps) {
          const std::vector<UnitWeights> heads = unit_weights_of_heads(call, b, units[i], step);
          for (size_t head = 0; head < heads.size(); ++head)
            counts[i][result_.system_of(call.layer, static_cast<int64_t>(head), step)] =
                LinkCounts::of(heads[head].links(), gold_of(*pairs[i]).links);
        }
      }
    });
  }

  int64_t num_weights(const SentencePair& pair) const {
    int64_t weights = 0;
    for (const PlaceAnalysis& place : result_.places)
      weights += std::ssize(place.site == AttentionSite::kEncoderSelf ? pair.src : pair.tgt) *
                 std::ssize(place.site == AttentionSite::kDecoderSelf ? pair.tgt : pair.src) * result_.num_heads;
    return weights;
  }

  /// Allocates maps for the first pairs of this batch, as far as more sentences are to be explored. A pair that is too large gets none.
  std::vector<std::vector<RoundedMap>> room_for_maps(const BatchPairs& pairs) const {
    const size_t count = std::min(static_cast<size_t>(settings_.explored) - result_.explored.size(), pairs.size());
    std::vector<std::vector<RoundedMap>> maps(count);
    for (size_t b = 0; b < count && !result_.explored.is_full(); ++b)
      if (num_weights(*pairs[b]) <= ExploredSentences::kMostWeights) maps[b].resize(result_.places.size());
    return maps;
  }

  void explore(const CallWeights& call, std::vector<std::vector<RoundedMap>>& maps) const {
    for (size_t b = 0; b < maps.size(); ++b)
      if (!maps[b].empty()) maps[b][result_.place_of(call.site, call.layer)] = rounded_map(call, static_cast<int64_t>(b));
  }

  void save(const CallWeights& call, const BatchPairs& pairs) {
    const auto chosen = [](const std::set<int64_t>& wanted, int64_t one) { return wanted.empty() || wanted.contains(one); };
    if (settings_.saved_lines.empty() || !chosen(settings_.saved_layers, call.layer)) return;
    for (int64_t b = 0; b < call.num_sentences; ++b) {
      const SentencePair& pair = *pairs[static_cast<size_t>(b)];
      if (!settings_.saved_lines.contains(pair.line)) continue;
      result_.saved_pieces[pair.line + 1] = {pieces_of(*vocabularies_.src, pair.src), pieces_of(*vocabularies_.tgt, pair.tgt)};
      std::vector<at::Tensor> heads;
      for (int64_t head = 0; head < call.num_heads; ++head) {
        if (!chosen(settings_.saved_heads, head)) continue;
        const WeightMatrix matrix = call.weights.matrix(b, head);
        heads.push_back(at::tensor(at::ArrayRef<float>(matrix.values, static_cast<size_t>(matrix.queries * matrix.keys)), at::kFloat)
                            .view({matrix.queries, matrix.keys}));
      }
      result_.saved["line." + std::to_string(pair.line + 1) + "." + name_of(call.site) + "." + std::to_string(call.layer)] =
          at::stack(heads);
    }
  }

  void decode_shuffled(const std::vector<SentencePair>& pairs) {
    const std::vector<SentencePair> shuffled = with_shuffled_targets(pairs, settings_.seed);
    if (shuffled.empty() && std::any_of(pairs.begin(), pairs.end(), [](const SentencePair& pair) { return !pair.is_left_out(); }))
      ++lonely_pairs_;
    const auto observe = [&](const CallWeights& call) {
      for (const PlaceSums& sums : measure_sentences(call, {.divergence = false})) place(call.layer, call.site).shuffled.add(sums);
    };
    for (const auto& batch : batches_of(shuffled, settings_.batch_tokens)) show(batch, observe, /*is_shuffled=*/true);
  }

  int64_t wanted_importance() const { return std::min(settings_.importance_sentences, settings_.num_pairs); }

  /// Measures importance on pairs spread evenly. The next usable pair stands for one left out; at the end of the corpus, the previous one.
  void measure_importance(const std::vector<SentencePair>& pairs) {
    const int64_t wanted = wanted_importance();
    if (wanted == 0) return;
    for (const SentencePair& pair : pairs) {
      owed_importance_ += (pair.line + 1) * wanted / settings_.num_pairs - pair.line * wanted / settings_.num_pairs;
      if (pair.is_left_out()) continue;
      if (owed_importance_ > 0)
        add_importance_of(pair);
      else
        spare_ = pair;
    }
  }

  void add_importance_of(const SentencePair& pair) {
    correlate_importance(model_, pair, settings_.batch_tokens, shows_mask_, result_.importance);
    --owed_importance_;
    ++result_.importance_pairs;
    progress_(0);
  }

  PlaceAnalysis& place(int layer, AttentionSite site) { return result_.places[result_.place_of(site, layer)]; }

  /// Notes which measures the corpus was too small for. Throws DataError if it has no pair at all.
  void check_result() {
    if (result_.pairs == 0)
      throw DataError(settings_.src + " and " + settings_.tgt + ": nothing to analyse: " +
                      why_none_is_left(result_.bad_pairs, result_.bad_pairs + result_.empty_pairs + result_.long_pairs.count,
                                       "empty on a side, or longer than " + counted(result_.max_tokens, "token")));
    if (owed_importance_ > 0)
      result_.notes.push_back("importance: " + std::to_string(owed_importance_) + " of " + std::to_string(wanted_importance()) +
                              " pairs, left out with no other to take in their place");
    if (lonely_pairs_ > 0)
      result_.notes.push_back("shuffled references: " + std::to_string(lonely_pairs_) + " of " + std::to_string(result_.pairs) +
                              " pairs, alone among " + std::to_string(kPairsAtATime) + " lines");
  }

  Transformer& model_;
  const Vocabularies vocabularies_;
  const std::string joiner_;
  const AnalysisSettings& settings_;
  const std::function<void(int64_t)>& progress_;
  ModelAnalysis result_;
  bool shows_mask_ = false;
  std::vector<Gold> gold_;  // of the pairs read last
  int64_t first_line_ = 0, num_sentences_ = 0;
  int64_t lonely_pairs_ = 0;           // pairs that found no other to swap references with
  int64_t owed_importance_ = 0;        // pairs drawn so far in whose place none was measured
  std::optional<SentencePair> spare_;  // the last that was not drawn
};

}  // namespace

void NumberMean::add(const std::vector<double>& values, double more) {
  sums.resize(values.size(), 0.0);
  for (size_t i = 0; i < values.size(); ++i) sums[i] += values[i] * more;
  weight += more;
}

std::vector<double> NumberMean::mean() const {
  std::vector<double> means = sums;
  for (double& mean : means) mean /= weight;
  return means;
}

size_t ModelAnalysis::place_of(AttentionSite site, int layer) const {
  const size_t decoder = static_cast<size_t>(decoder_layers), encoder = places.size() - 2 * decoder, index = static_cast<size_t>(layer);
  if (site == AttentionSite::kEncoderSelf) return index;
  return site == AttentionSite::kDecoderSelf ? encoder + index : encoder + decoder + index;
}

size_t ModelAnalysis::system_of(int layer, int64_t head, AlignmentStep step) const {
  return static_cast<size_t>((layer * (num_heads + 1) + head) * 2 + (step == AlignmentStep::kShifted ? 1 : 0));
}

ModelAnalysis analyze_model(const AnalyzedModel& model, const AnalysisSettings& settings, const std::function<void(int64_t)>& progress) {
  return Pass(model, settings, progress).run();
}

}  // namespace lacuna
