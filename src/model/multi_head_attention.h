#pragma once

#include <memory>
#include <vector>

#include "attention/attention.h"
#include "attention/norms/norm.h"
#include "attention/rows/row_numbers.h"
#include "base/ragged.h"
#include "config/options.h"
#include "model/linear.h"
#include "model/mask_model.h"
#include "model/residual_stream.h"

namespace lacuna {

/// One attention sub-layer's place and choice.
struct AttentionPlace {
  AttentionSite site;
  int layer;
  AttentionChoice choice;
};

/// What self- and cross-attention share (Vaswani et al. 2017, section 3.2.2): heads attend, their concatenation is normalised (if its type
/// asks for that) and goes through `output`. Parameters: norm.*, output.*, numbers.* where the type learns numbers of its own, and mask.*
/// (and gate.*) where it takes a mask.
class MultiHeadAttention : public torch::nn::Module {
 public:
  MultiHeadAttention(const ModelOptions& options, const AttentionPlace& place, const ParameterPath& path);

 protected:
  /// x [T, D] -> a view [T, H, d].
  Tensor heads_of(const Tensor& x) const;
  /// Makes parts of x [T, parts * D] the call's k and v, or its q, k and v.
  void take_parts(AttentionCall& call, const Tensor& x, int64_t parts) const;
  /// A call of this place on queries made of x, with everything but q, k, v and keys.
  AttentionCall new_call(const Ragged& x, const ForwardContext& context) const;
  bool has_mask() const { return mask_ != nullptr; }
  /// The mask's keys of x [T, D]: (T, D); undefined without a mask.
  Tensor mask_keys(const Tensor& x, const ForwardContext& context);
  /// Adds to a call that has its q: the mask's queries of x, its keys [Tk, H, d], and the gate. Does nothing without a mask.
  void add_mask(AttentionCall& call, const Tensor& x, const Tensor& keys, const ForwardContext& context);
  /// Rows of queries, keys or values: bf16 where training's products are, unless the type has a mask, which needs float.
  Tensor projected(Linear& projection, const Ragged& x, const ForwardContext& context) const;
  /// (Tq, D)
  SubLayerOutput output_of(const AttentionCall& call, const ForwardContext& context);

  int64_t d_model_, num_heads_;

 private:
  void add_numbers(AttentionCall& call, const Ragged& x, const ForwardContext& context) const;

  AttentionPlace place_;
  double dropout_;
  std::shared_ptr<RowNumbers> numbers_;  // null if the type takes none
  std::shared_ptr<AttentionNorm> norm_;
  std::shared_ptr<Linear> output_;
  std::shared_ptr<MaskModel> mask_;  // null if the type takes no mask
  std::shared_ptr<Linear> gate_;     // (T, D) queries -> (T, H); null if the type has no gate
};

/// Keys and values [slots, parts, H, d] of tokens decoded so far, one row for each slot; the third part is the mask's keys, where there is
/// a mask.
struct SlotBuffer {
  Tensor keys_values;
  int64_t parts = 2;
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
  SubLayerOutput forward(const Ragged& x, const ForwardContext& context);
  /// x (N, D), the newest token of each hypothesis -> (N, D). Writes their keys and values into the buffer.
  SubLayerOutput step(const Tensor& x, SlotBuffer& buffer, const StepKeys& keys, const ForwardContext& context);
  /// An empty buffer for `step`.
  SlotBuffer new_buffer() const { return {.keys_values = {}, .parts = has_mask() ? 3 : 2}; }

 private:
  bool is_causal_;
  std::shared_ptr<Linear> qkv_;
};

/// What cross-attention knows of a source: keys and values (Ts, 2D), and the mask's keys (Ts, D), undefined without a mask.
struct MemoryKeys {
  Tensor keys_values, mask_keys;
};

/// Queries from the decoder, keys and values from the encoder's output: parameters query.* and key_value.weight [2D, D] (keys, values).
class CrossAttention : public MultiHeadAttention {
 public:
  CrossAttention(const ModelOptions& options, const AttentionPlace& place, const ParameterPath& path);
  /// memory (Ts, D) -> what any number of `forward`s read.
  MemoryKeys read(const Ragged& memory, const ForwardContext& context);
  /// x (Tq, D) -> (Tq, D). `keys` says which rows of `memory` each sentence of x sees.
  SubLayerOutput forward(const Ragged& x, const MemoryKeys& memory, const std::shared_ptr<const KeyRange>& keys,
                         const ForwardContext& context);

 private:
  std::shared_ptr<Linear> query_, key_value_;
};

}  // namespace lacuna
