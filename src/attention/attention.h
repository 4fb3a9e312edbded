#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/mask_training.h"
#include "attention/probe.h"
#include "base/forward_context.h"
#include "base/ragged.h"
#include "config/config_node.h"
#include "config/options.h"

/// The attention core: one function for every type, pattern, site, device and precision.
namespace lacuna {

/// Which rows of k and v the queries of each sentence may look at: sentence b sees `count[b]` keys, key j of it (position j) is row
/// `begin[b] + j`, or, where `slots` is not empty, row `slots[begin[b] + j]` (how beam search names keys without copying them).
struct KeyRange {
  std::vector<int32_t> begin, count;  // [B]
  std::vector<int32_t> slots;
  static KeyRange of(const RaggedShape& shape);
  bool operator==(const KeyRange&) const = default;
};

class AttentionType;  // a type with its options, pattern(s): attention/registry.h

/// One call. q [Tq, H, d], k and v [Tk, H, d]: any row and head strides, contiguous over d. The result is [Tq, H, d], contiguous.
struct AttentionCall {
  Tensor q, k, v;
  Tensor packed;                         // [Tk, 3, H, d] of which q, k and v, or [Tk, 2, H, d] of which k and v are the parts, if they are
                                         // such: their gradient is then made in one piece
  RaggedShapePtr queries;                // B sentences of queries
  std::shared_ptr<const KeyRange> keys;  // B key ranges
  std::vector<int32_t> first_position;   // [B] position of each sentence's first query; empty = 0 for all
  bool causal = false;                   // query at position i sees keys at positions <= i
  bool rows_alike = false;               // a query's result has the same bits whatever other queries its sentence has
  double scale = 1;                      // scores = scale * q.k
  const AttentionType* type = nullptr;
  std::vector<Tensor> numbers;  // learned numbers a type takes for each row, [H] or [Tq, H] each
  double dropout = 0;           // of the weights, when context.training
  int layer = 0;                // with site: names the dropout's random numbers and what a probe sees
  AttentionSite site = AttentionSite::kEncoderSelf;
  Tensor mask_q, mask_k;  // of a type with a mask, like q and k: its scores = scale * mask_q.mask_k
};

/// sum_j p_j v_j for every query and head, with gradients for q, k, v and numbers. On CPU the fused core (float; bf16, with products of
/// bf16 factors where the processor has instructions for them; double runs the same code on plain rows), on a GPU its kernels (float and
/// bf16, cuda/run.h). Deterministic: the same bits whatever the number of threads.
///
/// With a type that takes a mask: mask_q and mask_k are constants, but in the mask pass (context.is_mask_pass()) they have gradients too,
/// the weights are the perturbed ones, and context.masks, if any, is told what the masks come to. It has no kernels for GPUs yet.
Tensor attention(const AttentionCall& call, const ForwardContext& context);

/// True if `attention` has a fused core for q, k and v of this type on this device (which may compute bf16 on the CPU in float). Other
/// calls are computed by attention_reference.
bool has_fused_core(const AttentionCall& call);

/// The same from plain ATen operations and autograd, on any device and floating type: the reference of the tests, and the core where there
/// is no other.
Tensor attention_reference(const AttentionCall& call, const ForwardContext& context);

/// How one site of one layer attends, resolved from the configuration.
struct AttentionChoice {
  std::shared_ptr<const AttentionType> type;  // with its options and its pattern for each head
  std::string norm;                           // norm over the concatenated heads: none, rms, gated_rms, layer
  ConfigNode norm_options;
};

/// The whole model's choices, from `model.attention`: a default, sites over it, layers of a site over that.
struct AttentionPlan {
  std::vector<AttentionChoice> encoder_self, decoder_self, cross;  // [layers]
  /// How masks are trained, if a layer has one. (Each layer has its own penalty.)
  std::optional<MaskTraining> masks = {};
};

/// Reads `model.attention` (null = softmax everywhere). Throws ConfigError with line, key and value for an unknown type, pattern, norm or
/// option, or for a combination that has no meaning (a distance pattern on cross attention).
AttentionPlan resolve_attention(const ConfigNode& attention, int64_t encoder_layers, int64_t decoder_layers, int64_t num_heads);
AttentionPlan resolve_attention(const ModelOptions& model);
/// Throws what resolve_attention throws.
void require_attention(const ModelOptions& model);

/// The sites at which two plans differ, as YAML would say them: "cross: {type: topk, k: 8}" and "cross: softmax".
struct PlanDifference {
  std::string first, second;  ///< empty: the plans are the same
};
PlanDifference difference(const AttentionPlan& first, const AttentionPlan& second);
/// The places at which both plans learn the same numbers, but in different units, so that the parameters of one would mean something else
/// in the other: "encoder_self.0: span of max_span 64 and max_span 32". Empty = none.
std::string difference_in_units(const AttentionPlan& first, const AttentionPlan& second);

}  // namespace lacuna
