#include <cmath>
#include <limits>

#include "base/error.h"
#include "search/beam.h"
#include "search/search.h"

namespace lacuna {

std::unique_ptr<DecoderCache> start(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings) {
  std::vector<std::vector<TokenId>> sources, candidates;
  sources.reserve(inputs.size());
  for (const SearchInput& input : inputs) {
    sources.push_back(input.src);
    if (settings.shortlist) candidates.push_back(settings.shortlist->candidates(input.src, input.prefix));
  }
  auto cache = model.start(sources);
  cache->set_alignment_layer(settings.alignment_layer);
  if (settings.shortlist) cache->set_candidates(candidates);
  return cache;
}

SearchResults beam_search(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings) {
  const auto cache = start(model, inputs, settings);
  Beams beams(inputs, settings, model.max_positions());
  while (!beams.all_finished()) {
    const Logits logits = model.step(beams.last_tokens(), *cache);
    cache->select(beams.extend(beams.candidates(logits), cache->alignment()));
  }
  return std::move(beams).results();
}

void require_number(float log_prob, TokenId token) {
  if (std::isnan(log_prob) || token == std::numeric_limits<TokenId>::max())
    throw CheckpointError(
        "the model's probabilities are not numbers: its weights are damaged or its training diverged; use an earlier checkpoint");
}

SearchResults search(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings) {
  if (inputs.empty()) return {};
  return settings.options.sampling == Sampling::kNone ? beam_search(model, inputs, settings) : sample(model, inputs, settings);
}

}  // namespace lacuna
