#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

using TokenId = int32_t;

/// Ids of the special tokens, the same in every vocabulary. There is no padding.
inline constexpr TokenId kUnk = 0, kBos = 1, kEos = 2;

/// Converts between text and token ids for one language side, by a SentencePiece model or by a token list that splits
/// at spaces. Immutable and safe to share by threads.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;

  virtual int64_t size() const = 0;
  /// Returns the best segmentation of a line, without eos. The line must be valid UTF-8.
  virtual std::vector<TokenId> encode(std::string_view line) const = 0;
  /// Draws a segmentation for subword regularization: `alpha` smooths the distribution over the `nbest` segmentations
  /// (unigram), or is the probability to drop a merge (bpe). A pure function of the line and `random_key`
  /// (base/random.h), so that a resumed run draws the same.
  virtual std::vector<TokenId> sample(std::string_view line, double alpha, int64_t nbest, uint64_t random_key) const = 0;
  /// Returns the plain text of the ids; bos and eos are skipped.
  virtual std::string decode(std::span<const TokenId> ids) const = 0;
  virtual const std::string& piece(TokenId id) const = 0;
  /// Returns the id of a piece; kUnk if the vocabulary lacks it.
  virtual TokenId id_of(std::string_view piece) const = 0;
  /// Returns, for each id of `ids`, the index of its space-separated word in `line`; for eos, the number of words.
  virtual std::vector<int32_t> words_of(std::string_view line, std::span<const TokenId> ids) const = 0;
  /// Returns the bytes of the vocabulary's file, which checkpoints store.
  virtual const std::string& serialized() const = 0;
  virtual bool is_sentencepiece() const = 0;
};

using VocabularyPtr = std::shared_ptr<const Vocabulary>;

/// The vocabularies of both sides; the same object if they share one.
struct Vocabularies {
  VocabularyPtr src, tgt;
  bool shared() const { return src == tgt; }
};

/// Returns the first difference between the pieces of two vocabularies: "their source vocabularies have 8 and 9
/// pieces", or "piece 4 of their source vocabularies is "a" and "b"", where `side` is "source" or "target". Empty if
/// the same ids stand for the same pieces; the two may still segment a line differently.
std::string vocabulary_difference(const Vocabulary& first, const Vocabulary& second, const std::string& side);

/// Reads a SentencePiece model and renumbers its pieces: unk 0, bos 1, eos 2, then the others in the model's order,
/// without padding. Throws DataError if the file is not a model.
VocabularyPtr load_sentencepiece(const std::string& path);
VocabularyPtr sentencepiece_from_bytes(std::string bytes, const std::string& name_for_errors);
/// Reads a token list for `tokenizer: none`: one token per line; <unk>, <s> and </s> are prepended if missing. Throws
/// DataError for a line that is not a token, or one that occurs twice.
VocabularyPtr load_token_list(const std::string& path);
VocabularyPtr token_list_from_bytes(std::string bytes, const std::string& name_for_errors);

}  // namespace lacuna
