#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/options.h"
#include "data/batch.h"
#include "data/corpus.h"
#include "data/permutation.h"

namespace lacuna {

/// Everything that decides which sentences are in which batch.
struct BatchPlan {
  std::vector<std::shared_ptr<const TokenizedCorpus>> corpora;
  std::vector<double> weights;  ///< of each corpus: how often an epoch draws each of its sentences; the fraction chooses some of them
  int64_t batch_tokens = 0;     ///< bounds source and target tokens alike; a longer pair is a batch of its own
  uint64_t seed = 1;
  double spm_alpha = DataOptions().spm_alpha;  ///< subword sampling in training; > 0 needs corpora with text
  int64_t spm_nbest = DataOptions().spm_nbest;
  int64_t max_length = DataOptions().max_length;
  Vocabularies vocabularies;  ///< for sampling only
};

/// What an epoch draws of all corpora, each by its weight; where a fraction chooses sentences, tokens are those to be expected.
struct EpochSize {
  int64_t pairs = 0, src_tokens = 0, tgt_tokens = 0;
};
EpochSize epoch_size(const BatchPlan& plan);
/// How many batches an epoch has: counted over its first 100,000 sentence pairs, and where there are more in proportion.
double batches_of_epoch(const BatchPlan& plan);

/// One epoch of training data: batch by batch, in an order that (seed, epoch) decides. With subword sampling, batches are put together by
/// the lengths of the best segmentations, so that where a batch begins can be found without tokenising: a batch is then as much larger than
/// `batch_tokens` as its samples are longer. A sample beyond `max_length` gives way to the best segmentation; none is drawn where
/// that has `max_length` tokens, as it has when cropped.
class Epoch {
 public:
  Epoch(const BatchPlan& plan, int64_t epoch);

  /// The next batch; null when the epoch is over.
  std::shared_ptr<const Batch> next();
  /// Passes over so many batches, reading lengths only.
  void skip(int64_t batches);
  bool is_over() const { return position_ >= draws_; }
  /// Sentence pairs of the batches so far, given or passed over.
  int64_t pairs_done() const { return static_cast<int64_t>(position_); }

 private:
  struct Draw {
    const TokenizedCorpus* corpus;
    int64_t sentence;
    uint64_t number;  // of the draw in the epoch's order before shuffling: the same sentence drawn twice has two, and its dropout and its
                      // subword samples go by it
  };
  Draw draw(uint64_t position) const;
  std::vector<Draw> next_draws();
  std::vector<TokenId> ids(const Draw& draw, bool is_src) const;
  std::vector<TokenId> sample(const Draw& draw, bool is_src) const;

  const BatchPlan& plan_;
  int64_t epoch_;
  std::vector<uint64_t> ends_;  // draws of the corpora up to and with each
  uint64_t draws_ = 0;
  Permutation order_;
  uint64_t position_ = 0;
};

/// Sentence pairs as one batch; eos is already at their ends.
class BatchBuilder {
 public:
  void add(std::span<const TokenId> src, std::span<const TokenId> tgt, int64_t id);
  bool is_empty() const { return ids_.empty(); }
  /// True if the pair fits beside what is there.
  bool fits(int64_t src_length, int64_t tgt_length, int64_t batch_tokens) const {
    return is_empty() || (static_cast<int64_t>(src_.size()) + src_length <= batch_tokens &&
                          static_cast<int64_t>(tgt_.size()) + tgt_length <= batch_tokens);
  }
  std::shared_ptr<const Batch> take();

 private:
  std::vector<TokenId> src_, tgt_;
  std::vector<int32_t> src_offsets_ = {0}, tgt_offsets_ = {0};
  std::vector<int64_t> ids_;
};

}  // namespace lacuna
