#include <limits>

#include "base/interrupt.h"
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

void beam_search(StepModel& model, SearchQueue& queue, const SearchSettings& settings) {
  Beams beams(queue, settings, model.max_positions());
  std::unique_ptr<DecoderCache> cache;
  while (true) {
    if (const std::vector<size_t> added = queue.take(beams.src_tokens()); !added.empty()) {
      auto fresh = start(model, queue.inputs(added), settings);
      if (beams.all_finished()) {
        cache = std::move(fresh);
      } else {
        cache->join(*fresh);
      }
      beams.add(added);
    }
    if (beams.all_finished()) return;
    stop_if_interrupted("translating");
    const Logits logits = model.step(beams.last_tokens(), *cache);
    cache->select(beams.extend(beams.candidates(logits), cache->alignment()));
  }
}

void search(StepModel& model, SearchQueue& queue, const SearchSettings& settings) {
  settings.options.sampling == Sampling::kNone ? beam_search(model, queue, settings) : sample(model, queue, settings);
}

SearchResults search(StepModel& model, const std::vector<SearchInput>& inputs, const SearchSettings& settings) {
  SearchQueue queue(inputs, std::numeric_limits<int64_t>::max());
  search(model, queue, settings);
  return std::move(queue).results();
}

}  // namespace lacuna
