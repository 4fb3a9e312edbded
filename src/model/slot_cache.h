#pragma once

#include <memory>
#include <vector>

#include "model/decoder_cache.h"
#include "model/multi_head_attention.h"
#include "model/shortlisted_projection.h"

namespace lacuna {

/// The Transformer's decoder cache: for each layer a buffer of slots and the source's keys and values.
class SlotCache : public DecoderCache {
 public:
  /// memory [layers]: keys and values of the source's tokens.
  SlotCache(RaggedShapePtr sources, std::vector<MemoryKeys> memory);

  int64_t num_hypotheses() const override { return static_cast<int64_t>(slots_.size()); }
  void select(const std::vector<int32_t>& parents) override;
  void join(DecoderCache& fresh) override;
  const std::vector<int32_t>& sentences() const override { return sentences_; }
  void set_candidates(const std::vector<std::vector<int32_t>>& candidates) override {
    shortlisted_ = std::make_unique<ShortlistedProjection>(candidates);
  }
  void set_alignment_layer(int layer) override { alignment_layer_ = layer; }
  void set_alignment_head(int head) override { alignment_head_ = head; }
  const std::vector<std::vector<float>>& alignment() const override { return alignment_; }

  /// Appends a slot to every hypothesis, and returns what the step attends to. `num_heads` and `d_head` are those of
  /// the buffers.
  StepKeys append(int64_t num_heads, int64_t d_head);
  /// Returns the shape that takes hypotheses of one sentence as queries of one sentence: they see the same rows of
  /// `memory`.
  RaggedShapePtr memory_queries() const;
  /// Returns the rows of `memory` that each sentence of memory_queries() sees.
  std::shared_ptr<const KeyRange> memory_keys() const;
  SlotBuffer& buffer(int layer) { return buffers_[static_cast<size_t>(layer)]; }
  const MemoryKeys& memory(int layer) const { return memory_[static_cast<size_t>(layer)]; }
  int alignment_layer() const { return alignment_layer_; }
  int alignment_head() const { return alignment_head_; }
  void set_alignment(std::vector<std::vector<float>> weights) { alignment_ = std::move(weights); }
  /// Returns the projection to the sentences' candidates; null where there are none.
  ShortlistedProjection* shortlisted() const { return shortlisted_.get(); }
  /// Returns the number of slots, in use or free.
  int64_t capacity() const { return capacity_; }

 private:
  /// Returns the sentences with a live hypothesis, in the order of these.
  std::vector<int32_t> live_sentences() const;
  void grow(int64_t num_heads, int64_t d_head);

  RaggedShapePtr sources_;
  std::vector<MemoryKeys> memory_;
  std::vector<SlotBuffer> buffers_;
  std::vector<std::vector<int32_t>> slots_;  // of each hypothesis, oldest first
  std::vector<int32_t> sentences_;
  std::vector<int32_t> free_;  // slots of no hypothesis
  int64_t capacity_ = 0;
  std::unique_ptr<ShortlistedProjection> shortlisted_;
  int alignment_layer_ = -1, alignment_head_ = -1;
  std::vector<std::vector<float>> alignment_;
};

}  // namespace lacuna
