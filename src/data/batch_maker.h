#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.h"
#include "config/options.h"
#include "data/batch.h"
#include "data/corpus.h"
#include "data/streamed_corpus.h"

namespace lacuna {

/// Everything that decides which sentences are in which batch.
struct BatchPlan {
  std::vector<std::shared_ptr<const TokenizedCorpus>> corpora;
  std::vector<double> weights;  ///< for each corpus, how often an epoch draws each of its sentences; a fraction selects some of them
  std::shared_ptr<StreamedCorpus> stream = {};  ///< in place of corpora, of which each block is then one
  int64_t batch_tokens = 0;                     ///< limit for source and for target tokens; a longer pair is a batch of its own
  uint64_t seed = 1;
  double spm_alpha = DataOptions().spm_alpha;  ///< subword sampling in training; > 0 needs corpora with text
  int64_t spm_nbest = DataOptions().spm_nbest;
  int64_t max_length = DataOptions().max_length;
  Vocabularies vocabularies;  ///< for sampling, and to find the tokens of linked words
};

/// Sums up what an epoch draws from all corpora by their weights; of a stream, nothing is known: 0. Where a fraction selects sentences,
/// tokens are expected values.
struct EpochSize {
  int64_t pairs = 0, src_tokens = 0, tgt_tokens = 0;
};
EpochSize epoch_size(const BatchPlan& plan);
/// Estimates the batches of an epoch, 0 for a stream: counts those of its first 100,000 sentence pairs and extrapolates.
double batches_of_epoch(const BatchPlan& plan);

/// Makes the batches of one epoch in an order that depends on (seed, epoch). With subword sampling, batches are composed by the lengths of
/// the best segmentations, so that a batch's start can be found without tokenizing; sampled sentences are longer, and a batch may then
/// exceed `batch_tokens`. A sample longer than `max_length` is replaced by the best segmentation; where that has `max_length` tokens
/// already (cropped), nothing is sampled.
class Epoch {
 public:
  Epoch(const BatchPlan& plan, int64_t epoch);

  /// Returns the next batch; null at the end of the epoch.
  std::shared_ptr<const Batch> next();
  /// Skips a number of batches, which may be any that a file says, reading lengths only.
  void skip(int64_t batches) {
    for (int64_t i = 0; i < batches && !is_over(); ++i) next_draws();
  }
  bool is_over() const { return position_ >= draws_; }
  /// Sentence pairs of the batches so far, returned or skipped.
  int64_t pairs_done() const { return static_cast<int64_t>(position_); }

 private:
  struct Draw {
    const TokenizedCorpus* corpus;
    int64_t sentence;
    uint64_t number;  // of the draw in the epoch's order before shuffling; keys dropout and subword samples, which differ when a
                      // sentence is drawn twice
  };
  Draw draw(uint64_t position) const;
  std::vector<Draw> next_draws();
  std::vector<TokenId> ids(const Draw& draw, bool is_src) const;
  std::vector<TokenId> sample(const Draw& draw, bool is_src) const;
  WordLinks links(const Draw& draw, std::span<const TokenId> src, std::span<const TokenId> tgt) const;

  const BatchPlan& plan_;
  int64_t epoch_;
  std::vector<uint64_t> ends_;  // cumulative number of draws, by corpus
  uint64_t draws_ = 0;
  Permutation order_;
  uint64_t position_ = 0;
};

/// Which batches of the one stream a rank makes: of every `per_update` batches, counted from where the stream starts, those of which the
/// number leaves `rank` when divided by `size`.
struct BatchShare {
  int64_t rank = 0, size = 1;
  int64_t per_update = 1;
};

/// Returns the stream of training batches from a position on. Others' batches are passed over, reading lengths only. A background thread
/// makes a few batches ahead; `next` rethrows its errors. A stream can be read from its beginning alone, once, by one rank: each of its
/// blocks counts as an epoch.
std::unique_ptr<BatchStream> make_batch_stream(BatchPlan plan, DataPosition start = {}, BatchShare share = {});

}  // namespace lacuna
