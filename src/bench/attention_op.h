#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "attention/attention.h"
#include "attention/norms/norm.h"
#include "attention/rows/row_numbers.h"

/// The attention operation that `lacuna-bench attention` times, and its inputs.
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

/// Scores for which a type gives a required share of zero weights.
struct SparseScores {
  ConfigNode attention;    ///< the type; top-k with its k
  AttentionInputs inputs;  ///< with scaled scores; for ReLA, whose zero has a meaning, shifted ones
  double zero_share = 0;   ///< the share reached, on the first sentence
};

/// True for types that can give zero weights.
bool can_give_zeros(const AttentionType& type);

/// Finds scores with a share of zeros as near to `zeros` as scaling, shifting or the choice of k allows. REQUIRES: can_give_zeros().
SparseScores sparse_scores(const ConfigNode& attention, const AttentionShape& shape, const AttentionInputs& inputs, double zeros);

}  // namespace lacuna
