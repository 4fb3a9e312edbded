#include "model/slot_cache.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/device.h"

namespace lacuna {

SlotCache::SlotCache(RaggedShapePtr sources, std::vector<MemoryKeys> memory, std::vector<Tensor> buffers)
    : sources_(std::move(sources)),
      memory_(std::move(memory)),
      buffers_(std::move(buffers)),
      sentences_(static_cast<size_t>(sources_->num_sentences())) {
  std::iota(sentences_.begin(), sentences_.end(), 0);
  keys_->begin.assign(sentences_.size(), 0);
  keys_->count.assign(sentences_.size(), 0);
  step_.keys = keys_;
  sentences_changed();
}

void SlotCache::sentences_changed() {
  memory_queries_.assign(1, 0);
  memory_keys_->begin.clear();
  memory_keys_->count.clear();
  for (size_t i = 0; i < sentences_.size(); ++i) {
    if (i == 0 || sentences_[i] != sentences_[i - 1]) {
      memory_queries_.push_back(memory_queries_.back());
      memory_keys_->begin.push_back(sources_->begin(sentences_[i]));
      memory_keys_->count.push_back(sources_->length(sentences_[i]));
    }
    ++memory_queries_.back();
  }
}

void SlotCache::select(const std::vector<int32_t>& parents) {
  selected_.begin.clear();
  selected_.count.clear();
  selected_.slots.clear();
  selected_sentences_.clear();
  for (const int32_t parent : parents) {
    const auto i = static_cast<size_t>(parent);
    const auto first = keys_->slots.begin() + keys_->begin[i];
    selected_.begin.push_back(static_cast<int32_t>(selected_.slots.size()));
    selected_.count.push_back(keys_->count[i]);
    selected_.slots.insert(selected_.slots.end(), first, first + keys_->count[i]);
    selected_sentences_.push_back(sentences_[i]);
  }
  std::swap(*keys_, selected_);
  std::swap(sentences_, selected_sentences_);
  if (device_slots_) device_slots_->select(parents);
  std::fill(in_use_.begin(), in_use_.end(), 0);
  for (const int32_t slot : keys_->slots) in_use_[static_cast<size_t>(slot)] = 1;
  sentences_changed();
}

void SlotCache::join(DecoderCache& fresh) {
  auto& other = dynamic_cast<SlotCache&>(fresh);
  if (other.capacity() > 0) throw std::logic_error("a cache that joins another has not been stepped yet");
  std::vector<int32_t> kept = sentences_;
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  std::vector<int32_t> lengths, rows;
  for (const int32_t sentence : kept) {
    lengths.push_back(sources_->length(sentence));
    for (int32_t i = 0; i < lengths.back(); ++i) rows.push_back(sources_->begin(sentence) + i);
  }
  const Tensor kept_rows = tensor_of(rows, memory_.front().keys_values.device());
  const auto joined = [&](const Tensor& here, const Tensor& there) {
    return here.defined() ? at::cat({here.index_select(0, kept_rows), there}) : Tensor();
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
  keys_->begin.resize(sentences_.size(), static_cast<int32_t>(keys_->slots.size()));
  keys_->count.resize(sentences_.size(), 0);
  if (device_slots_) device_slots_->add(std::ssize(other.sentences_));
  sources_ = std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths));
  sentences_changed();
}

const StepKeys& SlotCache::append() {
  const auto count = sentences_.size();
  step_.queries.resize(count + 1);
  std::iota(step_.queries.begin(), step_.queries.end(), 0);
  step_.positions = keys_->count;
  step_.new_slots.clear();
  for (size_t slot = 0; step_.new_slots.size() < count; ++slot) {  // the lowest are taken first
    if (slot == in_use_.size()) grow();
    if (in_use_[slot] == 0) step_.new_slots.push_back(static_cast<int64_t>(slot));
    in_use_[slot] = 1;
  }
  std::vector<int32_t>& slots = keys_->slots;
  slots.resize(slots.size() + count);
  for (size_t i = count; i-- > 0;) {  // the last first: each range moves behind those before it, which grow too
    const auto first = slots.begin() + keys_->begin[i], last = first + keys_->count[i];
    const auto moved = i == 0 ? first : std::move_backward(first, last, last + static_cast<std::ptrdiff_t>(i));
    keys_->begin[i] = static_cast<int32_t>(moved - slots.begin());
    moved[keys_->count[i]++] = static_cast<int32_t>(step_.new_slots[i]);
  }
  return step_;
}

void SlotCache::set_device_slots(std::unique_ptr<DeviceSlots> slots) {
  device_slots_ = std::move(slots);
  device_slots_->add(num_hypotheses());
}

const DeviceStep* SlotCache::append_on_device(const std::vector<int32_t>& tokens) {
  if (!device_slots_) return nullptr;
  first_of_memory_.clear();
  num_memory_.clear();
  for (const int32_t sentence : sentences_) {
    first_of_memory_.push_back(sources_->begin(sentence));
    num_memory_.push_back(sources_->length(sentence));
  }
  return &device_slots_->append({tokens, step_.positions, step_.new_slots, first_of_memory_, num_memory_});
}

void SlotCache::reserve(int64_t slots) {
  if (!device_slots_ || slots <= capacity()) return;
  int64_t bytes_of_slot = 0;
  for (const Tensor& buffer : buffers_) bytes_of_slot += buffer.stride(0) * static_cast<int64_t>(buffer.element_size());
  const at::Device device = buffers_.front().device();
  constexpr int64_t kEmulated = int64_t{1} << 30;
  const int64_t room = (device.is_cpu() ? kEmulated : free_bytes(device)) / 4;
  if (const int64_t wanted = std::min(slots, room / bytes_of_slot); wanted > capacity()) grow_to(static_cast<size_t>(wanted));
}

void SlotCache::grow() {
  grow_to(std::max({2 * in_use_.size(), 16 * sentences_.size(), size_t{64}}));
}

void SlotCache::grow_to(size_t capacity) {
  for (Tensor& buffer : buffers_) {
    std::vector<int64_t> sizes = buffer.sizes().vec();
    sizes.front() = static_cast<int64_t>(capacity);
    const Tensor larger = at::empty(sizes, buffer.options());
    larger.narrow(0, 0, buffer.size(0)).copy_(buffer);
    buffer = larger;
  }
  in_use_.resize(capacity, 0);
  constexpr size_t kNamedBy = 4;  // hypotheses that share a slot; more make the lists grow, too
  for (KeyRange* keys : {keys_.get(), &selected_}) keys->slots.reserve(kNamedBy * capacity);
}

}  // namespace lacuna
