#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/probe.h"
#include "base/ragged.h"
#include "data/corpus_reader.h"
#include "model/transformer.h"
#include "text/vocabulary.h"

/// Given pairs of sentences, as forced decoding takes them.
namespace lacuna {

/// A pair of lines and its tokens, with eos; a side is empty if its line is. Of a pair that is too long nothing is kept but its number.
struct SentencePair {
  int64_t line = 0;  ///< from 0
  std::string src_text, tgt_text;
  std::vector<TokenId> src, tgt;
  bool is_long = false;  ///< a side has more tokens or words than its reader takes, and none is empty
  std::string error;     ///< why a pair that is passed over cannot be taken
  bool is_empty() const { return !is_long && error.empty() && (src.empty() || tgt.empty()); }
  bool is_left_out() const { return is_empty() || is_long || !error.empty(); }
};

enum class LongPairs { kRefuse, kMark };

/// The most words, and tokens, of a side for its attention to be analysed: the memory for weights grows with the square of the length.
inline constexpr int64_t kMostToLookAt = 4096;
/// The most tokens, with a model of max_positions positions (0 = no limit).
int64_t longest_to_look_at(int64_t max_positions);

/// The pairs that are left out as a side is too long, counted for one warning.
struct LongPairCount {
  int64_t count = 0, first_line = 0;  ///< from 0
  void see(const SentencePair& pair);
  /// "2 of 30 pairs `fate`: a side has more than 5 tokens (...) or 4096 words; the first is line 4".
  std::string message(const std::string& fate, int64_t pairs, int64_t max_tokens) const;
};

/// Reads two files as tokenized pairs.
class PairReader {
 public:
  /// A pair with a side of more than `max_tokens` is a bad one or, with LongPairs::kMark, is marked as is_long; so is then one with more
  /// than kMostToLookAt words, which may outnumber tokens, as normalization leaves nothing of some. A bad pair makes next() throw LineError
  /// or, under OnBadLine::kSkip, has its error alone, which is warned of.
  PairReader(const std::string& src, const std::string& tgt, Vocabularies vocabularies, int64_t max_tokens,
             LongPairs long_pairs = LongPairs::kRefuse, OnBadLine bad_lines = OnBadLine::kStop);
  /// The next pairs, at most `count`; empty at the end. Of every `step` of the files only the first, the others being passed over.
  std::vector<SentencePair> next(size_t count, int64_t step = 1);
  /// Passes over pairs, whatever they hold. Returns false if the files end before.
  bool skip(int64_t pairs) { return reader_.skip(pairs); }
  /// True if no pair follows.
  bool is_at_end() { return reader_.is_at_end(); }
  /// Returns the share of the source's bytes that were read.
  double share_read() const { return reader_.share_read(); }
  /// Returns the number of pairs that were read or passed over.
  int64_t line_number() const { return reader_.line_number(); }

 private:
  std::vector<TokenId> ids_of(const Vocabulary& vocabulary, const std::string& line, const std::string& place, bool& is_long) const;
  /// Makes a pair of two lines. If a side is too long, neither text nor ids of either side are kept.
  SentencePair pair_of(const std::string& src_line, const std::string& tgt) const;

  CorpusReader reader_;
  Vocabularies vocabularies_;
  int64_t max_tokens_;
  LongPairs long_pairs_;
  OnBadLine bad_lines_;
};

/// Pairs that have both sides and fit the model, in order, in batches of at most so many tokens of the longer side each.
std::vector<std::vector<const SentencePair*>> batches_of(const std::vector<SentencePair>& pairs, int64_t batch_tokens);

/// Both sides of a batch as the model takes them.
struct RaggedPairs {
  Ragged src, tgt;
};
RaggedPairs ragged_pairs(const std::vector<const SentencePair*>& pairs, at::Device device);

/// Makes the decoder say the targets, without gradients; `probe` sees the attention. Throws CheckpointError for outputs that are NaN.
void force_decode(Transformer& model, const RaggedPairs& batch, AttentionProbe& probe);

}  // namespace lacuna
