#include <cmath>
#include <limits>

#include "base/error.h"
#include "search/beam.h"
#include "search/search.h"

namespace lacuna {
namespace {

std::vector<std::vector<TokenId>> sources_of(const std::vector<SearchInput>& inputs) {
  std::vector<std::vector<TokenId>> sources;
  for (const SearchInput& input : inputs) sources.push_back(input.src);
  return sources;
}

}  // namespace

SearchResults beam_search(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings) {
  const auto cache = model.start(sources_of(inputs));
  cache->set_alignment_layer(settings.alignment_layer);
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
