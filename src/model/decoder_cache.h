#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ragged.h"

namespace lacuna {

/// What decoding remembers between steps: the source's cross-attention keys and values, once a sentence, and the self-attention keys and
/// values of every token of every live hypothesis, once a token.
///
/// A hypothesis is a sentence index and a list of slots (rows of the key and value buffers). Choosing and reordering beams copies these
/// short lists, never keys or values. Slots that no live hypothesis names are used again.
class DecoderCache {
 public:
  virtual ~DecoderCache() = default;
  /// Live hypotheses N. At the start there is one for each source sentence, in order.
  virtual int64_t num_hypotheses() const = 0;
  /// The hypotheses of the next step: number i continues hypothesis parents[i] of now. A hypothesis may be continued by none (it ends) or
  /// by several.
  virtual void select(const std::vector<int32_t>& parents) = 0;
  /// Takes in the sentences of another cache of the same model, which has not been stepped: its hypotheses stand behind those here.
  /// Sentences without a live hypothesis are forgotten, the others numbered anew, from 0 in the order of the hypotheses. Hypotheses of one
  /// sentence must stand side by side.
  virtual void join(DecoderCache& fresh) = 0;
  /// The source sentence (index in the encoded batch, until `join`) of each live hypothesis.
  virtual const std::vector<int32_t>& sentences() const = 0;
  /// The tokens that may translate each source sentence: ascending ids, [sentences]. Nothing else is worked out from then on. At first all
  /// of the vocabulary.
  virtual void set_candidates(const std::vector<std::vector<int32_t>>& candidates) = 0;
  /// Cross-attention weights of the last step averaged over heads of one layer are wanted: `set_alignment_layer(layer)`; -1 = none (the
  /// default).
  virtual void set_alignment_layer(int layer) = 0;
  /// [N][source length] weights of the last step, if asked for.
  virtual const std::vector<std::vector<float>>& alignment() const = 0;
};

}  // namespace lacuna
