#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/forward_context.h"
#include "attention/probe.h"
#include "base/ragged.h"
#include "base/upload.h"
#include "config/config_node.h"
#include "config/options.h"

/// Attention: one function for every type, pattern, site, device and precision. README.md walks the road of a call.
namespace lacuna {

/// Which rows of k and v the queries of each sentence may look at: sentence b sees `count[b]` keys; that at position j
/// is row `begin[b] + j` or, unless `slots` is empty, `slots[begin[b] + j]`: so beam search need not copy keys.
struct KeyRange {
  std::vector<int32_t> begin, count;  // [B]
  std::vector<int32_t> slots;
  static KeyRange of(const RaggedShape& shape);
  bool operator==(const KeyRange&) const = default;
};

class AttentionType;  // a type with its options and patterns: attention/registry.h

/// The arguments of one call of attention(). q [Tq, H, d], k and v [Tk, H, d]: any row and head strides, contiguous
/// over d. The result is [Tq, H, d], contiguous.
struct AttentionCall {
  Tensor q, k, v;
  Tensor packed;                         // if q, k and v are its parts, [Tk, 3, H, d]; if k and v are, [Tk, 2, H, d]; else undefined. Their
                                         // gradients are then parts of one tensor
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
};

/// On the CPU, sentences with at most so many keys keep their weights for the backward pass (cpu/pass_tensors.h). At
/// this length they need the most memory for each token.
inline constexpr int64_t kKeptKeys = 128;

/// Returns sum_j p_j v_j for every query and head, with gradients for q, k, v and numbers. On the CPU, the fused core
/// (float; bf16, with products of bf16 factors where the processor has instructions for them; double, on plain rows),
/// on a GPU its kernels (float and bf16, gpu/run.h). The bits do not depend on the number of threads.
Tensor attention(const AttentionCall& call, const ForwardContext& context);

/// Has the upload bring what a GPU reads of calls like this one, which this thread will make once it is sent. q, k and v need their sizes,
/// types and device, and no values. Without it, calls send that themselves.
void prepare_attention(const AttentionCall& call, const ForwardContext& context, Upload& upload);

/// Returns true if attention() has a fused core for q, k and v of this type on this device (which may compute bf16 on
/// the CPU in float). Other calls are computed by attention_reference.
bool has_fused_core(const AttentionCall& call);

/// Returns what attention() returns, computed by plain ATen operations and autograd on any device and floating type:
/// the reference of the tests, and the implementation where there is no other.
Tensor attention_reference(const AttentionCall& call, const ForwardContext& context);

/// How one site of one layer attends, resolved from the configuration.
struct AttentionChoice {
  std::shared_ptr<const AttentionType> type;  // with its options and its pattern for each head
  std::string norm;                           // norm over the concatenated heads: none, rms, gated_rms, layer
  ConfigNode norm_options;
};

/// How every layer attends, from `model.attention`: a default, sites that override it, layers that override their site.
struct AttentionPlan {
  std::vector<AttentionChoice> encoder_self, decoder_self, cross;  // [layers]
};

/// Reads `model.attention` (null = softmax everywhere). Throws ConfigError with line, key and value for an unknown
/// type, pattern, norm or option, or for a combination that has no meaning (a distance pattern on cross attention).
AttentionPlan resolve_attention(const ConfigNode& attention, int64_t encoder_layers, int64_t decoder_layers, int64_t num_heads);
AttentionPlan resolve_attention(const ModelOptions& model);

/// The sites at which two plans differ, in YAML: "cross: {type: topk, k: 8}" and "cross: softmax".
struct PlanDifference {
  std::string first, second;  ///< empty: the plans are the same
};
PlanDifference difference(const AttentionPlan& first, const AttentionPlan& second);
/// Returns the first place at which both plans learn the same numbers, but in different units, so that the parameters
/// of one would mean something else in the other: "encoder_self.0: span of max_span 64 and max_span 32". Empty = none.
std::string difference_in_units(const AttentionPlan& first, const AttentionPlan& second);

}  // namespace lacuna
