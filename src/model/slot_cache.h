#pragma once

#include <memory>
#include <vector>

#include "model/decoder_cache.h"
#include "model/device_slots.h"
#include "model/multi_head_attention.h"
#include "model/shortlisted_projection.h"

namespace lacuna {

/// The Transformer's decoder cache: for each layer a buffer of slots and the source's keys and values.
class SlotCache : public DecoderCache {
 public:
  /// memory [layers]: keys and values of the source's tokens. `buffers` [layers]: without slots yet.
  SlotCache(RaggedShapePtr sources, std::vector<MemoryKeys> memory, std::vector<Tensor> buffers);

  void select(const std::vector<int32_t>& parents) override;
  void reserve(int64_t slots) override;
  void join(DecoderCache& fresh) override;
  const std::vector<int32_t>& sentences() const override { return sentences_; }
  void set_candidates(const std::vector<std::vector<int32_t>>& candidates) override {
    shortlisted_ = std::make_unique<ShortlistedProjection>(candidates);
  }
  void set_alignment(AlignmentSource source) override { alignment_source_ = source; }
  const std::vector<std::vector<float>>& alignment() const override { return alignment_; }

  /// Appends a slot to every hypothesis, and returns what the step attends to, until the next call that changes the
  /// cache.
  const StepKeys& append();
  /// Returns the borders [B + 1] between the hypotheses of one sentence and the next: these are queries of one sentence
  /// and see the same rows of `memory`.
  const std::vector<int32_t>& memory_queries() const { return memory_queries_; }
  /// Returns the rows of `memory` that each sentence of memory_queries() sees.
  std::shared_ptr<const KeyRange> memory_keys() const { return memory_keys_; }
  /// Returns the keys and values of a layer's slots: see SelfAttention::new_buffer.
  const Tensor& buffer(size_t layer) const { return buffers_[layer]; }
  const MemoryKeys& memory(size_t layer) const { return memory_[layer]; }
  /// Returns the memory of steps that run on rows; null where they run on tensors.
  StepRows* step_rows() const { return step_rows_.get(); }
  void set_step_rows(std::unique_ptr<StepRows> rows) { step_rows_ = std::move(rows); }
  /// Returns the slots on a GPU; null elsewhere.
  DeviceSlots* device_slots() const { return device_slots_.get(); }
  void set_device_slots(std::unique_ptr<DeviceSlots> slots);
  /// Gives the GPU what append() said and the newest tokens; returns what the step reads there. Null where there are no slots on a GPU.
  const DeviceStep* append_on_device(const std::vector<int32_t>& tokens);
  AlignmentSource alignment_source() const { return alignment_source_; }
  void record_alignment(std::vector<std::vector<float>> weights) { alignment_ = std::move(weights); }
  /// Returns the projection to the sentences' candidates; null where there are none.
  ShortlistedProjection* shortlisted() const { return shortlisted_.get(); }
  /// Returns the number of slots, in use or free.
  int64_t capacity() const { return std::ssize(in_use_); }

 private:
  void sentences_changed();
  void grow();
  void grow_to(size_t capacity);

  RaggedShapePtr sources_;
  std::vector<MemoryKeys> memory_;
  std::vector<Tensor> buffers_;
  std::shared_ptr<KeyRange> keys_ = std::make_shared<KeyRange>();  // the slots of each hypothesis, oldest first
  StepKeys step_;
  std::vector<int32_t> sentences_;       // of each hypothesis
  std::vector<int32_t> memory_queries_;  // see there
  std::shared_ptr<KeyRange> memory_keys_ = std::make_shared<KeyRange>();
  std::vector<uint8_t> in_use_;  // [capacity] 1 = a hypothesis names the slot
  KeyRange selected_;            // this and the next: memory of select()
  std::vector<int32_t> selected_sentences_;
  std::unique_ptr<ShortlistedProjection> shortlisted_;
  std::unique_ptr<StepRows> step_rows_;
  std::unique_ptr<DeviceSlots> device_slots_;
  std::vector<int32_t> first_of_memory_, num_memory_;  // of each hypothesis
  AlignmentSource alignment_source_;
  std::vector<std::vector<float>> alignment_;
};

}  // namespace lacuna
