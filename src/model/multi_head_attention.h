#pragma once

#include <memory>
#include <vector>

#include "attention/attention.h"
#include "attention/norm.h"
#include "attention/row_numbers.h"
#include "base/ragged.h"
#include "config/options.h"
#include "model/linear.h"

namespace lacuna {

/// One attention sub-layer's place and choice.
struct AttentionPlace {
  AttentionSite site;
  int layer;
  AttentionChoice choice;
};

/// What self- and cross-attention share (Vaswani et al. 2017, section 3.2.2): heads attend, their concatenation is normalised (if its type
/// asks for that) and goes through `output`. Parameters: norm.*, output.*, and numbers.* where the type learns numbers of its own.
class MultiHeadAttention : public torch::nn::Module {
 public:
  MultiHeadAttention(const ModelOptions& options, const AttentionPlace& place, const ParameterPath& path);

 protected:
  /// x [T, parts * D] -> `parts` views [T, H, d].
  std::vector<Tensor> heads_of(const Tensor& x, int64_t parts) const;
  /// A call of this place on queries made of x, with everything but q, k, v and keys.
  AttentionCall new_call(const Ragged& x, const ForwardContext& context) const;
  /// (Tq, D)
  Tensor output_of(const AttentionCall& call, const ForwardContext& context);

  int64_t d_model_, num_heads_;

 private:
  void add_numbers(AttentionCall& call, const Ragged& x, const ForwardContext& context) const;

  AttentionPlace place_;
  double dropout_;
  std::shared_ptr<RowNumbers> numbers_;  // null if the type takes none
  std::shared_ptr<AttentionNorm> norm_;
  std::shared_ptr<Linear> output_;
};

/// Keys and values [slots, 2, H, d] of tokens decoded so far, one row for each slot.
struct SlotBuffer {
  Tensor keys_values;
};

/// Which slots each of N hypotheses sees in one decoding step; its newest token's slot comes last.
struct StepKeys {
  RaggedShapePtr queries;                // N sentences of one query
  std::shared_ptr<const KeyRange> keys;  // N ranges of slots
  std::vector<int32_t> positions;        // [N] of the newest tokens
  Tensor new_slots;                      // [N] int64
};

/// Queries, keys and values from the same rows, in one product: parameters qkv.weight [3D, D] (queries, keys, values), qkv.bias.
class SelfAttention : public MultiHeadAttention {
 public:
  SelfAttention(const ModelOptions& options, const AttentionPlace& place, const ParameterPath& path);
  /// x (T, D) -> (T, D); a decoder's token sees itself and those before it.
  Tensor forward(const Ragged& x, const ForwardContext& context);
  /// x (N, D), the newest token of each hypothesis -> (N, D). Writes their keys and values into the buffer.
  Tensor step(const Tensor& x, SlotBuffer& buffer, const StepKeys& keys, const ForwardContext& context);

 private:
  bool is_causal_;
  std::shared_ptr<Linear> qkv_;
};

/// Queries from the decoder, keys and values from the encoder's output: parameters query.* and key_value.weight [2D, D] (keys, values).
class CrossAttention : public MultiHeadAttention {
 public:
  CrossAttention(const ModelOptions& options, const AttentionPlace& place, const ParameterPath& path);
  /// memory (Ts, D) -> keys and values (Ts, 2D), for any number of `forward`s.
  Tensor keys_values(const Tensor& memory, const ForwardContext& context);
  /// x (Tq, D) -> (Tq, D). `keys` says which rows of `keys_values` each sentence of x sees.
  Tensor forward(const Ragged& x, const Tensor& keys_values, const std::shared_ptr<const KeyRange>& keys, const ForwardContext& context);

 private:
  std::shared_ptr<Linear> query_, key_value_;
};

}  // namespace lacuna
