#pragma once

#include <memory>
#include <vector>

#include "base/ragged.h"
#include "model/feed_forward.h"
#include "model/multi_head_attention.h"
#include "model/norm.h"
#include "model/residual_stream.h"
#include "model/slot_cache.h"

namespace lacuna {

/// One layer: self-attention, in a decoder cross-attention, then feed-forward, each with a norm before or after it.
class TransformerLayer : public torch::nn::Module {
 public:
  TransformerLayer(const ModelOptions& options, const AttentionPlan& attention, Stack stack, int index, const ParameterPath& path);

  std::shared_ptr<SelfAttention> self_attention;
  std::shared_ptr<CrossAttention> cross_attention;  ///< null in an encoder
  std::shared_ptr<FeedForward> feed_forward;
  std::vector<std::shared_ptr<Norm>> norms;  ///< of these, in this order
};

/// A stack of layers. Modules: layers.<i>, and norm if pre-norm.
class LayerStack : public torch::nn::Module {
 protected:
  LayerStack(const ModelOptions& options, const AttentionPlan& attention, Stack stack, const ParameterPath& path);
  ResidualStream stream_of(const Ragged& embedded, const ForwardContext& context) const {
    return {norm_place_, norms_, embedded, dropout_, context};
  }
  ResidualRows stream_of(StepRows& rows) const { return {norm_place_, norms_, rows}; }
  DropoutSite site(int layer, DropoutPlace place) const { return {stack_, layer, place}; }

  std::vector<std::shared_ptr<TransformerLayer>> layers_;

 private:
  Stack stack_;
  NormPlace norm_place_;
  double dropout_;
  std::vector<std::shared_ptr<Norm>> norms_;  // of the whole stack, in the order of use
};

class Encoder : public LayerStack {
 public:
  Encoder(const ModelOptions& options, const AttentionPlan& attention, const ParameterPath& path)
      : LayerStack(options, attention, Stack::kEncoder, path) {}
  /// Has the upload bring what attention of the first layer reads of such sentences on a GPU; others that read something else send it.
  void prepare(const RaggedShapePtr& src, const ForwardContext& context, Upload& upload) const {
    layers_.front()->self_attention->prepare(src, src, context, upload);
  }
  /// Encodes embedded (Ts, D) -> memory (Ts, D).
  Ragged forward(const Ragged& embedded, const ForwardContext& context);
};

class Decoder : public LayerStack {
 public:
  Decoder(const ModelOptions& options, const AttentionPlan& attention, const ParameterPath& path)
      : LayerStack(options, attention, Stack::kDecoder, path) {}
  /// Does that for the decoder.
  void prepare(const RaggedShapePtr& src, const RaggedShapePtr& tgt, const ForwardContext& context, Upload& upload) const {
    layers_.front()->self_attention->prepare(tgt, tgt, context, upload);
    layers_.front()->cross_attention->prepare(tgt, src, context, upload);
  }
  /// Decodes all tokens at once: embedded (Tt, D), memory (Ts, D) -> (Tt, D).
  Ragged forward(const Ragged& embedded, const Ragged& memory, const ForwardContext& context);
  /// Returns an empty cache over an encoded batch.
  std::unique_ptr<SlotCache> start(const Ragged& memory);
  /// Decodes the newest token of each of the cache's N hypotheses: embedded (N, D) -> (N, D). `keys`:
  /// SlotCache::append's for this step; `there`: append_on_device's.
  Tensor step(const Tensor& embedded, SlotCache& cache, const StepKeys& keys, const DeviceStep* there, const ForwardContext& context);
  /// Does that where the cache has step rows: from the embedded tokens at rows.residual to the rows that it returns. They stay until the
  /// next step.
  const float* step(SlotCache& cache, const StepKeys& keys, AttentionProbe* probe) const;

 private:
  /// Returns what steps on plain memory need; null if some layer needs tensors.
  std::unique_ptr<StepRows> step_rows() const;
};

}  // namespace lacuna
