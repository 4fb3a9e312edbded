#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "attention/attention.h"
#include "attention/cpu/step.h"
#include "attention/norms/norm.h"
#include "attention/rows/row_numbers.h"
#include "base/ragged.h"
#include "config/options.h"
#include "model/calibrated/calibrated_attention.h"
#include "model/device_slots.h"
#include "model/linear.h"
#include "model/rotary_positions.h"
#include "model/step_rows.h"

namespace lacuna {

/// The place of an attention sub-layer and the attention chosen there.
struct AttentionPlace {
  AttentionSite site;
  int layer;
  AttentionChoice choice;
};

/// The common part of self- and cross-attention (Vaswani et al. 2017, section 3.2.2): heads attend, their concatenation
/// is normalized (if its type asks for that) and goes through `output`. Parameters: norm.*, output.*, numbers.* where
/// the type learns numbers of its own, and mask.* (and gate.*) where it is calibrated.
class MultiHeadAttention : public torch::nn::Module {
 public:
  MultiHeadAttention(const ModelOptions& options, const AttentionPlace& place, const ParameterPath& path);

  /// Returns the learned numbers [H, n] of each head if a step may run on plain memory. None on a GPU, in double, where
  /// the layer is calibrated, and where numbers depend on the query or the norm over heads needs tensors.
  std::optional<std::vector<float>> numbers_of_steps() const;
  /// Returns true if a step on a GPU may have one query a row, with keys like these.
  bool takes_one_query(const Tensor& keys) const { return !calibrated_ && cuda::takes_one_query(*place_.choice.type, keys); }
  /// Prepares for forward() on such sentences (prepare_attention()).
  void prepare(const RaggedShapePtr& queries, const RaggedShapePtr& keys, const ForwardContext& context, Upload& upload) const;

 protected:
  /// Returns x [T, D] as a view [T, H, d].
  Tensor heads_of(const Tensor& x) const;
  /// Sets the call's k and v, or q, k and v, to parts of x [T, parts * D].
  void take_parts(AttentionCall& call, const Tensor& x, int64_t parts) const;
  /// Returns a call of sentences of queries, complete except for q, k, v, keys and numbers.
  AttentionCall new_call(const RaggedShapePtr& queries) const;
  /// Returns a call on queries computed from x, complete except for q, k, v and keys.
  AttentionCall new_call(const Ragged& x, const ForwardContext& context) const;
  /// The mask model's keys of x [T, D]: (T, H, d); undefined without one.
  Tensor mask_keys(const Tensor& x, const ForwardContext& context);
  /// Rows of queries, keys or values: bf16 where training's products are, but float where the layer is calibrated.
  Tensor projected(Linear& projection, const NormedRows& x, const ForwardContext& context) const;
  /// Computes a call whose queries were made of x [Tq, D], with the mask model's keys [Tk, H, d], if it has one, and adds
  /// the output (Tq, D) to the residual stream at `end`.
  ResidualNorm output_of(const AttentionCall& call, const Tensor& x, const Tensor& mask_keys, const ResidualEnd& end,
                         const ForwardContext& context);
  /// Does that for a step on a GPU that is complete except for type, scale, numbers and patterns, and was made of x [N, D].
  ResidualNorm output_of(cuda::OneQueryStep step, const Tensor& x, const ResidualEnd& end, const ForwardContext& context);
  /// Writes what output_of() adds to the residual stream to rows.output, for a call that says which queries see which
  /// keys. The queries may be in rows.wide.
  void step_output(StepCall call, const std::vector<float>& numbers, StepRows& rows) const;

  const AttentionType& type() const { return *place_.choice.type; }
  bool is_causal() const { return place_.site == AttentionSite::kDecoderSelf; }

  int64_t d_model_, num_heads_;
  std::shared_ptr<CalibratedAttention> calibrated_;  // null for all other types

 private:
  void add_numbers(AttentionCall& call, const Ragged& x, const ForwardContext& context) const;

  AttentionPlace place_;
  double dropout_;
  std::shared_ptr<RowNumbers> numbers_;  // null if the type takes none
  std::shared_ptr<AttentionNorm> norm_;
  std::shared_ptr<Linear> output_;
};

/// The slots that each of N hypotheses sees in one decoding step, the slot of its newest token last.
struct StepKeys {
  std::vector<int32_t> queries;          // [N + 1] 0, 1, ...: each hypothesis is a sentence of one query
  std::shared_ptr<const KeyRange> keys;  // N ranges of slots
  std::vector<int32_t> positions;        // [N] of the newest tokens
  std::vector<int64_t> new_slots;        // [N]
};

/// Self-attention: queries, keys and values are computed from the same rows in one product: parameters qkv.weight [3D,
/// D] (queries, keys, values), qkv.bias.
class SelfAttention : public MultiHeadAttention {
 public:
  SelfAttention(const ModelOptions& options, const AttentionPlace& place, const ParameterPath& path);
  /// x (T, D) -> (T, D), added to the residual stream at `end`; a decoder's token sees itself and those before it.
  ResidualNorm forward(const NormedRows& x, const ResidualEnd& end, const ForwardContext& context);
  /// Attends for x (N, D), sentences of one query: the newest token of each hypothesis. Writes their keys and values into
  /// `new_slots` [N] of the buffer.
  ResidualNorm step(const NormedRows& x, const Tensor& buffer, const StepKeys& keys, const Tensor& new_slots, const ResidualEnd& end,
                    const ForwardContext& context);
  /// Does that on a GPU, where takes_one_query() says yes to the buffer: one kernel writes keys and values and attends.
  ResidualNorm step(const NormedRows& x, const Tensor& buffer, const DeviceStep& there, DeviceSlots& slots, const ResidualEnd& end,
                    const ForwardContext& context);
  /// Does that on plain memory: writes to rows.output.
  void step(const float* x, const Tensor& buffer, const StepKeys& keys, const std::vector<float>& numbers, StepRows& rows) const;
  /// Returns a buffer of no slots: keys and values [slots, parts, H, d] of tokens decoded so far, on the device of `like`.
  /// The third part is the mask model's keys, where there is one.
  Tensor new_buffer(const Tensor& like) const;

 private:
  std::shared_ptr<Linear> qkv_;
  std::unique_ptr<RotaryPositions> rotary_;  // null = positions are in the embeddings, or nowhere
};

/// What cross-attention knows of a source: keys and values (Ts, 2D), and the mask model's keys (Ts, H, d), undefined
/// without one.
struct MemoryKeys {
  Tensor keys_values, mask_keys;
};

/// Cross-attention: queries from the decoder, keys and values from the encoder's output: parameters query.* and
/// key_value.weight [2D, D] (keys, values).
class CrossAttention : public MultiHeadAttention {
 public:
  CrossAttention(const ModelOptions& options, const AttentionPlace& place, const ParameterPath& path);
  /// Computes from memory (Ts, D) what any number of `forward` calls read.
  MemoryKeys read(const Ragged& memory, const ForwardContext& context);
  /// x (Tq, D) -> (Tq, D). `keys` says which rows of `memory` each sentence of x sees.
  ResidualNorm forward(const NormedRows& x, const MemoryKeys& memory, const std::shared_ptr<const KeyRange>& keys, const ResidualEnd& end,
                       const ForwardContext& context);
  /// Does that for the newest tokens x [N, D] of hypotheses on a GPU, where takes_one_query() says yes to memory.keys_values.
  ResidualNorm step(const NormedRows& x, const MemoryKeys& memory, const DeviceStep& there, const ResidualEnd& end,
                    const ForwardContext& context);
  /// Does that for the newest tokens x [N, D] of hypotheses on plain memory: writes to rows.output. `queries` [B + 1]:
  /// the first hypothesis of each sentence, and how many there are. `probe`: null = none.
  void step(const float* x, const MemoryKeys& memory, const std::vector<int32_t>& queries, const KeyRange& keys,
            const std::vector<float>& numbers, AttentionProbe* probe, StepRows& rows) const;

 private:
  std::shared_ptr<Linear> query_, key_value_;
};

}  // namespace lacuna
