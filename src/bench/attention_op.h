#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "attention/attention.h"
#include "attention/norms/norm.h"
#include "attention/rows/row_numbers.h"

/// One attention by itself, as `lacuna bench attention` times it.
namespace lacuna {

/// Self-attention of sentences of one length.
struct AttentionShape {
  int64_t sentences = 8, heads = 8, length = 0, d_head = 64;
  bool is_causal = false;
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;

  int64_t tokens() const { return sentences * length; }
  /// Of the scores: scale * q.k.
  double scale() const;
};

/// q, k, v, and the gradient of the context: [T, H, d] each.
struct AttentionInputs {
  Tensor q, k, v, context_gradient;
};

/// Standard normal numbers, drawn from `seed` alone, on the CPU; operations move them to the shape's device.
AttentionInputs random_inputs(const AttentionShape& shape, uint64_t seed);
/// Scores become factor * score + shift: a shift takes the place of the first feature of each head.
AttentionInputs with_scores_changed(const AttentionInputs& inputs, const AttentionShape& shape, double factor, double shift);
/// Those of the first sentence.
AttentionInputs first_sentence(const AttentionInputs& inputs, const AttentionShape& shape);

/// The choice of a type (and its pattern, and the norm over the heads) that `node` names, for self-attention. Throws ConfigError.
AttentionChoice attention_choice(const ConfigNode& node, int64_t heads);

/// `attention()` with the norm that its type asks for.
class AttentionOp {
 public:
  AttentionOp(const AttentionChoice& choice, const AttentionShape& shape, const AttentionInputs& inputs);
  /// Forward and backward. A GPU may still be at work when it returns.
  void run();
  bool has_fused_core() const { return lacuna::has_fused_core(call_); }
  /// Of the weights that can be seen, the share that is exactly zero.
  double zero_share();

 private:
  Tensor context(AttentionProbe* probe);

  AttentionChoice choice_;
  AttentionCall call_;
  Tensor context_gradient_;              // [T, H * d]
  std::shared_ptr<RowNumbers> numbers_;  // null if the type takes none
  std::shared_ptr<AttentionNorm> norm_;
};

/// ATen's own fused softmax attention on the same numbers, laid out as it likes them: [sentences, H, length, d].
class AtenSoftmaxOp {
 public:
  AtenSoftmaxOp(const AttentionShape& shape, const AttentionInputs& inputs);
  void run();

 private:
  bool is_causal_;
  Tensor q_, k_, v_, context_gradient_;
};

}  // namespace lacuna
