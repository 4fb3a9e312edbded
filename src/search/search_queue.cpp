#include "search/search_queue.h"

#include <utility>

namespace lacuna {

SearchQueue::SearchQueue(std::vector<SearchInput> inputs, int64_t batch_tokens, std::function<void()> on_finish)
    : inputs_(std::move(inputs)), batch_tokens_(batch_tokens), on_finish_(std::move(on_finish)), results_(inputs_.size()) {}

std::vector<size_t> SearchQueue::take(int64_t tokens) {
  std::vector<size_t> places;
  if (tokens > batch_tokens_ / 2) return places;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (; next_ < inputs_.size(); ++next_) {
    const auto length = static_cast<int64_t>(inputs_[next_].src.size());
    if (tokens > 0 && tokens + length > batch_tokens_) break;
    tokens += length;
    places.push_back(next_);
  }
  return places;
}

std::vector<SearchInput> SearchQueue::inputs(const std::vector<size_t>& places) const {
  std::vector<SearchInput> inputs;
  inputs.reserve(places.size());
  for (const size_t place : places) inputs.push_back(inputs_[place]);
  return inputs;
}

}  // namespace lacuna
