#pragma once

#include <cstdint>
#include <vector>

#include "config/options.h"

namespace lacuna {

/// The keys and values that decoding keeps between steps: of cross-attention, those of each source sentence; of
/// self-attention, those of every token of every live hypothesis, once for all hypotheses that share the token.
///
/// A hypothesis is a sentence index and a list of slots (rows of the key and value buffers). Choosing and reordering
/// beams copies these short lists, never keys or values. Slots that no live hypothesis names are used again.
class DecoderCache {
 public:
  virtual ~DecoderCache() = default;
  /// Returns the number N of live hypotheses. At the start there is one for each source sentence, in order.
  int64_t num_hypotheses() const { return std::ssize(sentences()); }
  /// Replaces the hypotheses by those of the next step: number i continues hypothesis parents[i]. A hypothesis may be
  /// continued by none (it ends) or by several.
  virtual void select(const std::vector<int32_t>& parents) = 0;
  /// Says how many tokens live hypotheses may have at once. A GPU then has memory for their keys and values that need not grow, unless this
  /// is more than a quarter of what is free.
  virtual void reserve(int64_t /*slots*/) {}
  /// Appends the sentences of another cache of the same model, which has not been stepped yet. Sentences without a live
  /// hypothesis are dropped, the others renumbered from 0 in the order of the hypotheses. Hypotheses of one sentence
  /// must stand side by side.
  virtual void join(DecoderCache& fresh) = 0;
  /// Returns the source sentence (index in the encoded batch, until `join`) of each live hypothesis.
  virtual const std::vector<int32_t>& sentences() const = 0;
  /// Limits the output to the tokens that may translate each source sentence: ascending ids, [sentences]. Without a
  /// call, all of the vocabulary.
  virtual void set_candidates(const std::vector<std::vector<int32_t>>& candidates) = 0;
  /// Makes each step record cross-attention weights of this layer and head; none by default.
  virtual void set_alignment(AlignmentSource source) = 0;
  /// Returns the weights [N][source length] of the last step, if they are recorded.
  virtual const std::vector<std::vector<float>>& alignment() const = 0;
};

}  // namespace lacuna
