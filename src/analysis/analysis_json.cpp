#include <nlohmann/json.hpp>

#include "analysis/analysis_folder.h"

namespace lacuna {
namespace {

using nlohmann::ordered_json;

ordered_json or_null(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

/// The row measures of some sums; `of(f)` is f of one head's sums, or a list of it for each head.
template <class Of>
void add_row_measures(ordered_json& json, const AnalysisSettings& settings, Of of) {
  if (settings.wants("sparsity")) json["sparsity"] = of([](const HeadSums& sums) { return ordered_json(sums.sparsity()); });
  if (settings.wants("null_rate")) json["null_rate"] = of([](const HeadSums& sums) { return ordered_json(sums.null_rate()); });
  if (settings.wants("entropy")) json["entropy"] = of([](const HeadSums& sums) { return or_null(sums.mean_entropy()); });
  if (settings.wants("support")) json["support"] = of([](const HeadSums& sums) { return ordered_json(sums.support()); });
}

ordered_json row_measures(const PlaceSums& sums, const AnalysisSettings& settings) {
  ordered_json json = ordered_json::object(), heads = ordered_json::object();
  if (sums.pooled().rows == 0) return json;
  const HeadSums all = sums.pooled();
  add_row_measures(json, settings, [&](auto f) { return f(all); });
  add_row_measures(heads, settings, [&](auto f) {
    ordered_json list = ordered_json::array();
    for (const HeadSums& head : sums.heads) list.push_back(f(head));
    return list;
  });
  if (!heads.empty()) json["heads"] = heads;
  return json;
}

ordered_json diversity(const PlaceAnalysis& place) {
  ordered_json json;
  const auto mean = [&](size_t t) { return place.sums.divergence[t] / static_cast<double>(place.sums.queries); };
  if (!place.is_rectified) return {{"as_is", mean(0)}};
  for (size_t t = 0; t < std::size(kTemperatures); ++t) {
    const std::string name = ordered_json(kTemperatures[t]).dump();  // "1.0", "0.5", ...
    json[name] = mean(t);
  }
  return json;
}

ordered_json mask_effect(const MaskEffect& sums) {
  const auto rows = static_cast<double>(sums.rows);
  ordered_json json = {{"rows", sums.rows}};
  json["divergence"] = sums.divergence / rows;
  json["entropy_change"] = sums.entropy_change / rows;
  json["mask"] = sums.mask / rows;
  json["by_entropy"] = ordered_json::array();
  for (size_t i = 0; i < MaskEffect::kBins; ++i) {
    const auto& bin = sums.bins[i];
    if (bin.rows == 0) continue;
    json["by_entropy"].push_back({{"from", static_cast<double>(i) * MaskEffect::kBinWidth},
                                  {"rows", bin.rows},
                                  {"divergence", bin.divergence / static_cast<double>(bin.rows)}});
  }
  return json;
}

ordered_json place_json(const PlaceAnalysis& place, const AnalysisSettings& settings) {
  ordered_json json = {{"site", name_of(place.site)}, {"layer", place.layer}, {"type", place.type}};
  json.update(row_measures(place.sums, settings));
  if (settings.wants("diversity") && place.sums.queries > 0) json["diversity"] = diversity(place);
  for (const auto& [name, number] : place.numbers)
    if (settings.wants(name)) json["numbers"][name] = number.mean();
  if (place.mask_effect.rows > 0) json[kMaskEffect] = mask_effect(place.mask_effect);
  if (const ordered_json shuffled = row_measures(place.shuffled, settings); !shuffled.empty()) json["shuffled"] = shuffled;
  return json;
}

ordered_json alignment(const ModelAnalysis& model) {
  const AlignmentErrors& errors = *model.alignment;
  ordered_json json = {{"sentences", errors.sentences()}, {"layers", ordered_json::array()}};
  for (int layer = 0; layer < model.decoder_layers; ++layer) {
    ordered_json one = {{"layer", layer}};
    for (const AlignmentStep step : kAlignmentSteps) {
      ordered_json heads = ordered_json::array();
      int64_t best = 0;
      const auto rate = [&](int64_t head) { return errors.total(model.system_of(layer, head, step)).error_rate().value_or(1); };
      for (int64_t head = 0; head < model.num_heads; ++head) {
        heads.push_back(alignment_error_json(errors, model.system_of(layer, head, step)));
        if (rate(head) < rate(best)) best = head;
      }
      one[name_of(step)] = {
          {"heads", heads}, {"best_head", best}, {"average", alignment_error_json(errors, model.system_of(layer, model.num_heads, step))}};
    }
    json["layers"].push_back(one);
  }
  return json;
}

ordered_json correlation(const RankCorrelation& one) {
  return {{"tau_b", or_null(one.mean())}, {"rows", one.rows}, {"undefined", one.undefined}};
}

ordered_json importance(const ModelAnalysis& model) {
  ordered_json json = {{"pairs", model.importance_pairs}, {"layers", ordered_json::array()}};
  for (size_t layer = 0; layer < model.importance.size(); ++layer) {
    const ImportanceCorrelation& found = model.importance[layer];
    ordered_json one = {{"layer", layer}, {"attention", correlation(found.attention)}};
    if (!found.original.is_empty()) one["original"] = correlation(found.original);
    if (!found.mask.is_empty()) one["mask"] = correlation(found.mask);
    json["layers"].push_back(one);
  }
  return json;
}

ordered_json model_json(const ModelAnalysis& model, const AnalysisSettings& settings) {
  ordered_json json = {{"name", model.name},
                       {"num_heads", model.num_heads},
                       {"pairs", model.pairs},
                       {"empty_pairs", model.empty_pairs},
                       {"long_pairs", model.long_pairs.count},
                       {"bad_pairs", model.bad_pairs},
                       {"src_tokens", model.src_tokens},
                       {"tgt_tokens", model.tgt_tokens},
                       {"notes", model.notes},
                       {"places", ordered_json::array()}};
  for (const PlaceAnalysis& place : model.places) json["places"].push_back(place_json(place, settings));
  if (model.alignment) json["alignment"] = alignment(model);
  if (model.importance_pairs > 0) json["importance"] = importance(model);
  return json;
}

}  // namespace

nlohmann::ordered_json alignment_error_json(const AlignmentErrors& errors, size_t system) {
  const LinkCounts& total = errors.total(system);
  ordered_json json = {{"aer", or_null(total.error_rate())}};
  if (const auto interval = errors.interval(system)) json["interval"] = {interval->low, interval->high};
  json["precision"] = or_null(total.precision());
  json["recall"] = or_null(total.recall());
  json["links"] = total.links;
  return json;
}

ordered_json analysis_json(const std::vector<ModelAnalysis>& models, const AnalysisSettings& settings) {
  ordered_json json = {{"format", 1}, {"src", settings.src}, {"tgt", settings.tgt}};
  if (!settings.gold.empty()) json["gold"] = settings.gold;
  json["seed"] = settings.seed;
  if (!settings.overrides.empty()) json["overrides"] = settings.overrides;
  json["models"] = ordered_json::array();
  for (const ModelAnalysis& model : models) json["models"].push_back(model_json(model, settings));
  return json;
}

}  // namespace lacuna
