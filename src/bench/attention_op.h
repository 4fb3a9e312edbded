#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "attention/attention.h"
#include "attention/norms/norm.h"
#include "attention/rows/row_numbers.h"

/// The attention operation that `lacuna-bench attention` times.
namespace lacuna {

/// Self-attention of sentences of one length.
struct AttentionShape {
  int64_t sentences = 8, heads = 8, length = 0, d_head = 64;
  bool is_causal = false;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;

  int64_t tokens() const { return sentences * length; }
  /// Returns the factor of the scores: scale * q.k.
  double scale() const;
};

/// q, k, v, and the gradient of the context: [T, H, d] each.
struct AttentionInputs {
  Tensor q, k, v, context_gradient;
};

/// Returns standard normal inputs on the CPU, which depend on `seed` alone; operations move them to the shape's device.
AttentionInputs random_inputs(const AttentionShape& shape, uint64_t seed);
/// Changes the inputs so that scores become factor * score + shift; a shift replaces the first feature of each head.
AttentionInputs with_scores_changed(const AttentionInputs& inputs, const AttentionShape& shape, double factor, double shift);
/// Returns the inputs of the first sentence.
AttentionInputs first_sentence(const AttentionInputs& inputs, const AttentionShape& shape);

/// Returns the type, pattern and norm that `node` names, for self-attention. Throws ConfigError.
AttentionChoice attention_choice(const ConfigNode& node, int64_t heads);

/// `attention()` followed by the norm of its type.
class AttentionOp {
 public:
  AttentionOp(const AttentionChoice& choice, const AttentionShape& shape, const AttentionInputs& inputs);
  /// Runs forward and backward; a GPU may still be working when it returns.
  void run();
  bool has_fused_core() const { return lacuna::has_fused_core(call_); }
  /// Returns the share of exact zeros among the visible weights.
  double zero_share();

 private:
  Tensor context(AttentionProbe* probe);

  AttentionChoice choice_;
  AttentionCall call_;
  Tensor context_gradient_;              // [T, H * d]
  std::shared_ptr<RowNumbers> numbers_;  // null if the type takes none
  std::shared_ptr<AttentionNorm> norm_;
};

/// ATen's own fused softmax attention on the same inputs, in its layout [sentences, H, length, d].
class AtenSoftmaxOp {
 public:
  AtenSoftmaxOp(const AttentionShape& shape, const AttentionInputs& inputs);
  void run();

 private:
  bool is_causal_;
  Tensor q_, k_, v_, context_gradient_;
};

}  // namespace lacuna
