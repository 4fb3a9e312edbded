#pragma once

#include <memory>
#include <vector>

#include "base/ragged.h"
#include "model/feed_forward.h"
#include "model/multi_head_attention.h"
#include "model/norm.h"
#include "model/slot_cache.h"

namespace lacuna {

/// One decoder layer: self-attention, cross-attention and feed-forward, each with a norm before or after it.
class DecoderLayer : public torch::nn::Module {
 public:
  DecoderLayer(const ModelOptions& options, const AttentionPlan& attention, int layer, const ParameterPath& path);

  std::shared_ptr<SelfAttention> self_attention;
  std::shared_ptr<Norm> self_attention_norm;
  std::shared_ptr<CrossAttention> cross_attention;
  std::shared_ptr<Norm> cross_attention_norm;
  std::shared_ptr<FeedForward> feed_forward;
  std::shared_ptr<Norm> feed_forward_norm;
};

/// A stack of decoder layers. Modules: layers.<i>, and norm if pre-norm.
class Decoder : public torch::nn::Module {
 public:
  Decoder(const ModelOptions& options, const AttentionPlan& attention, const ParameterPath& path);
  /// Decodes all tokens at once: embedded (Tt, D), memory (Ts, D) -> (Tt, D).
  Ragged forward(const Ragged& embedded, const Ragged& memory, const ForwardContext& context);
  /// Returns an empty cache over an encoded batch.
  std::unique_ptr<SlotCache> start(const Ragged& memory);
  /// Decodes the newest token of each of the cache's N hypotheses: embedded (N, D) -> (N, D). `keys`:
  /// SlotCache::append's for this step.
  Tensor step(const Tensor& embedded, SlotCache& cache, const StepKeys& keys, const ForwardContext& context);

 private:
  NormPlace norm_place_;
  double dropout_;
  std::vector<std::shared_ptr<DecoderLayer>> layers_;
  std::vector<std::shared_ptr<Norm>> norms_;  // of the whole stack, in the order of use
};

}  // namespace lacuna
