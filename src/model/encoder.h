#pragma once

#include <memory>
#include <vector>

#include "base/ragged.h"
#include "model/feed_forward.h"
#include "model/multi_head_attention.h"
#include "model/norm.h"

namespace lacuna {

/// One encoder layer: self-attention, then feed-forward, each with a norm before or after it.
class EncoderLayer : public torch::nn::Module {
 public:
  EncoderLayer(const ModelOptions& options, const AttentionChoice& self_attention, int layer, const ParameterPath& path);

  std::shared_ptr<SelfAttention> self_attention;
  std::shared_ptr<Norm> self_attention_norm;
  std::shared_ptr<FeedForward> feed_forward;
  std::shared_ptr<Norm> feed_forward_norm;
};

/// A stack of encoder layers. Modules: layers.<i>, and norm if pre-norm.
class Encoder : public torch::nn::Module {
 public:
  Encoder(const ModelOptions& options, const AttentionPlan& attention, const ParameterPath& path);
  /// Encodes embedded (Ts, D) -> memory (Ts, D).
  Ragged forward(const Ragged& embedded, const ForwardContext& context);

 private:
  NormPlace norm_place_;
  double dropout_;
  std::vector<std::shared_ptr<EncoderLayer>> layers_;
  std::vector<std::shared_ptr<Norm>> norms_;  // of the whole stack, in the order of use
};

}  // namespace lacuna
