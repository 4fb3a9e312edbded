#include "model/slot_cache.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/device.h"

namespace lacuna {

SlotCache::SlotCache(RaggedShapePtr sources, std::vector<MemoryKeys> memory)
    : sources_(std::move(sources)),
      memory_(std::move(memory)),
      buffers_(memory_.size()),
      slots_(static_cast<size_t>(sources_->num_sentences())),
      sentences_(slots_.size()) {
  std::iota(sentences_.begin(), sentences_.end(), 0);
}

void SlotCache::select(const std::vector<int32_t>& parents) {
  std::vector<std::vector<int32_t>> slots;
  std::vector<int32_t> sentences;
  std::vector<bool> in_use(static_cast<size_t>(capacity_), false);
  for (const int32_t parent : parents) {
    slots.push_back(slots_[static_cast<size_t>(parent)]);
    sentences.push_back(sentences_[static_cast<size_t>(parent)]);
    for (const int32_t slot : slots.back()) in_use[static_cast<size_t>(slot)] = true;
  }
  slots_ = std::move(slots);
  sentences_ = std::move(sentences);
  free_.clear();
  for (int64_t slot = capacity_; slot-- > 0;)
    if (!in_use[static_cast<size_t>(slot)]) free_.push_back(static_cast<int32_t>(slot));
}

std::vector<int32_t> SlotCache::live_sentences() const {
  std::vector<int32_t> live;
  for (const int32_t sentence : sentences_)
    if (live.empty() || live.back() != sentence) live.push_back(sentence);
  return live;
}

void SlotCache::join(DecoderCache& fresh) {
  auto& other = dynamic_cast<SlotCache&>(fresh);
  if (other.capacity_ > 0) throw std::logic_error("a cache that joins another has not been stepped yet");
  const std::vector<int32_t> kept = live_sentences();
  std::vector<int32_t> lengths;
  std::vector<std::pair<int64_t, int64_t>> rows;  // first and how many, of sentences that stood side by side together
  for (const int32_t sentence : kept) {
    const int64_t begin = sources_->begin(sentence);
    lengths.push_back(sources_->length(sentence));
    if (!rows.empty() && rows.back().first + rows.back().second == begin) {
      rows.back().second += lengths.back();
    } else {
      rows.emplace_back(begin, lengths.back());
    }
  }
  const auto joined = [&](const Tensor& here, const Tensor& there) {
    if (!here.defined()) return Tensor();
    std::vector<Tensor> parts;
    parts.reserve(rows.size() + 1);
    for (const auto& [first, count] : rows) parts.push_back(here.narrow(0, first, count));
    parts.push_back(there);
    return at::cat(parts);
  };
  for (size_t layer = 0; layer < memory_.size(); ++layer) {
    const MemoryKeys& added = other.memory_[layer];
    memory_[layer] = {joined(memory_[layer].keys_values, added.keys_values), joined(memory_[layer].mask_keys, added.mask_keys)};
  }
  if (shortlisted_) shortlisted_->join(kept, std::move(*other.shortlisted_));

  for (size_t i = 0, next = 0; i < sentences_.size(); ++i) {
    if (sentences_[i] != kept[next]) ++next;
    sentences_[i] = static_cast<int32_t>(next);
  }
  for (const int32_t sentence : other.sentences_) {
    sentences_.push_back(static_cast<int32_t>(kept.size()) + sentence);
    lengths.push_back(other.sources_->length(sentence));
  }
  slots_.resize(sentences_.size());
  sources_ = std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths));
}

StepKeys SlotCache::append(int64_t num_heads, int64_t d_head) {
  while (static_cast<int64_t>(free_.size()) < num_hypotheses()) grow(num_heads, d_head);
  StepKeys step;
  KeyRange keys;
  std::vector<int64_t> new_slots;
  for (auto& slots : slots_) {
    slots.push_back(free_.back());
    free_.pop_back();
    new_slots.push_back(slots.back());
    step.positions.push_back(static_cast<int32_t>(slots.size()) - 1);
    keys.begin.push_back(static_cast<int32_t>(keys.slots.size()));
    keys.count.push_back(static_cast<int32_t>(slots.size()));
    keys.slots.insert(keys.slots.end(), slots.begin(), slots.end());
  }
  step.queries = std::make_shared<const RaggedShape>(RaggedShape::of_lengths(std::vector<int32_t>(slots_.size(), 1)));
  step.keys = std::make_shared<const KeyRange>(std::move(keys));
  step.new_slots = tensor_of(new_slots, memory_[0].keys_values.device());
  return step;
}

void SlotCache::grow(int64_t num_heads, int64_t d_head) {
  const int64_t capacity = std::max<int64_t>({2 * capacity_, 16 * num_hypotheses(), 64});
  for (SlotBuffer& buffer : buffers_) {
    const Tensor larger = at::empty({capacity, buffer.parts, num_heads, d_head}, memory_[0].keys_values.options());
    if (capacity_ > 0) larger.narrow(0, 0, capacity_).copy_(buffer.keys_values);
    buffer.keys_values = larger;
  }
  std::vector<int32_t> added(static_cast<size_t>(capacity - capacity_));
  std::iota(added.rbegin(), added.rend(), static_cast<int32_t>(capacity_));  // the lowest is taken first
  free_.insert(free_.begin(), added.begin(), added.end());
  capacity_ = capacity;
}

RaggedShapePtr SlotCache::memory_queries() const {
  std::vector<int32_t> lengths;
  for (size_t i = 0; i < sentences_.size(); ++i) {
    if (i == 0 || sentences_[i] != sentences_[i - 1]) lengths.push_back(0);
    ++lengths.back();
  }
  return std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths));
}

std::shared_ptr<const KeyRange> SlotCache::memory_keys() const {
  KeyRange keys;
  for (const int32_t sentence : live_sentences()) {
    keys.begin.push_back(sources_->begin(sentence));
    keys.count.push_back(sources_->length(sentence));
  }
  return std::make_shared<const KeyRange>(std::move(keys));
}

}  // namespace lacuna
