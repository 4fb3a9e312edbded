#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/ragged_shape.h"
#include "data/word_links.h"
#include "text/vocabulary.h"

namespace lacuna {

/// One micro-batch of sentence pairs, ragged on both sides. Every source and every target ends in eos.
struct Batch {
  std::vector<TokenId> src, tgt;        ///< [Ts], [Tt]
  RaggedShapePtr src_shape, tgt_shape;  ///< B sentences each, the same ids on both sides
  WordLinks links = {};                 ///< between tokens of `src` and of `tgt`, by their places there; for guided alignment
  int64_t src_tokens() const { return static_cast<int64_t>(src.size()); }
  int64_t tgt_tokens() const { return static_cast<int64_t>(tgt.size()); }
};

using BatchPtr = std::shared_ptr<const Batch>;

/// Collects sentence pairs, which end in eos already, into one batch.
class BatchBuilder {
 public:
  /// `links` are between tokens of the two sentences.
  void add(std::span<const TokenId> src, std::span<const TokenId> tgt, int64_t id, std::span<const WordLink> links = {});
  bool is_empty() const { return ids_.empty(); }
  /// Returns true if the pair fits into the batch. The rule of evaluation sets; Epoch composes training batches.
  bool fits(int64_t src_length, int64_t tgt_length, int64_t batch_tokens) const {
    return is_empty() || (static_cast<int64_t>(src_.size()) + src_length <= batch_tokens &&
                          static_cast<int64_t>(tgt_.size()) + tgt_length <= batch_tokens);
  }
  std::shared_ptr<const Batch> take();

 private:
  std::vector<TokenId> src_, tgt_;
  std::vector<int32_t> src_offsets_ = {0}, tgt_offsets_ = {0};
  std::vector<int64_t> ids_;
  WordLinks links_;
};

/// Settings of sentence pairs of random tokens, equally long on both sides. Tokens and lengths include eos.
struct RandomBatch {
  int64_t tokens = 0;                      ///< tokens of each side; the last sentence is shorter if they do not divide evenly
  int64_t sentence_length = 0;             ///< at least 1
  int64_t src_pieces = 0, tgt_pieces = 0;  ///< vocabulary sizes, more than unk, bos and eos
  uint64_t seed = 1;
};
std::shared_ptr<const Batch> random_batch(const RandomBatch& wanted);

/// Splits a batch of at least two sentences at the sentence border nearest to half of its target tokens. Sentences keep
/// their ids, and so their dropout. Throws ShapeError for a batch of one sentence.
std::pair<BatchPtr, BatchPtr> split_batch(const Batch& batch);

/// The position of a batch in the data, which is all that resuming needs: a batch is a pure function of (corpora, seed, position).
struct DataPosition {
  int64_t epoch = 0;  ///< full passes completed
  int64_t batch = 0;  ///< batches of this epoch already consumed
  bool operator==(const DataPosition&) const = default;
};

/// The stream of training batches, made ahead by a background thread; endless, but for text that is read once.
class BatchStream {
 public:
  virtual ~BatchStream() = default;
  /// Returns the next batch and waits for it if necessary; null for one that is another rank's, and where there is no other. Afterwards
  /// `position()` is that of the batch after it.
  virtual std::shared_ptr<const Batch> next() = 0;
  virtual DataPosition position() const = 0;
  /// True if no batch follows, because the text has ended.
  virtual bool is_over() const { return false; }
  /// True if no batch follows, because a signal has ended reading.
  virtual bool is_interrupted() const { return false; }
  /// True if the last batch was the last of its epoch, whosesoever it was.
  virtual bool at_epoch_end() const = 0;
  /// Seconds that `next` has waited for data so far.
  virtual double seconds_waited() const = 0;
};

}  // namespace lacuna
