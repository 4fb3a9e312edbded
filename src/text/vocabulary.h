#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

using TokenId = int32_t;

/// Ids that every vocabulary shares. There is no padding.
inline constexpr TokenId kUnk = 0, kBos = 1, kEos = 2;

/// Text <-> token ids for one side: a SentencePiece model, or a list of tokens that splits at spaces. Immutable after loading; safe to
/// share by threads.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;

  virtual int64_t size() const = 0;
  /// The best segmentation of one line, without eos. The caller has checked that the line is UTF-8.
  virtual std::vector<TokenId> encode(std::string_view line) const = 0;
  /// A segmentation drawn for subword regularisation: `alpha` smooths the draw from `nbest` segmentations (unigram) or drops merges (bpe).
  /// A pure function of the line and `random_key` (base/random.h), so that a resumed run draws the same.
  virtual std::vector<TokenId> sample(std::string_view line, double alpha, int64_t nbest, uint64_t random_key) const = 0;
  /// Plain text of the ids; bos and eos give nothing.
  virtual std::string decode(std::span<const TokenId> ids) const = 0;
  virtual const std::string& piece(TokenId id) const = 0;
  /// The id of a piece, kUnk if there is none.
  virtual TokenId id_of(std::string_view piece) const = 0;
  /// For each id of `ids`, the index of the (space-separated) word of `line` that it belongs to; eos gets the number of words.
  virtual std::vector<int32_t> words_of(std::string_view line, std::span<const TokenId> ids) const = 0;
  /// The bytes of the file it came from: what a checkpoint stores.
  virtual const std::string& serialized() const = 0;
  virtual bool is_sentencepiece() const = 0;
};

using VocabularyPtr = std::shared_ptr<const Vocabulary>;

/// Vocabularies of both sides; `src == tgt` (the same object) when they are shared.
struct Vocabularies {
  VocabularyPtr src, tgt;
  bool shared() const { return src == tgt; }
};

/// What first differs between the pieces of two vocabularies, where `side` is "source" or "target": "their source vocabularies have 8 and 9
/// pieces", or "piece 4 of their source vocabularies is "a" and "b"". Empty where the same ids mean the same pieces, although the two may
/// still split a line in different ways.
std::string vocabulary_difference(const Vocabulary& first, const Vocabulary& second, const std::string& side);

/// Reads a SentencePiece model, whatever its ids: here unk is 0, bos 1, eos 2 and the other pieces follow in its order, without padding.
/// Throws DataError if it is not one.
VocabularyPtr load_sentencepiece(const std::string& path);
VocabularyPtr sentencepiece_from_bytes(std::string bytes, const std::string& name_for_errors);
/// Reads a token list for `tokenizer: none`: one token a line, most frequent first; <unk>, <s>, </s> are added in front if missing.
VocabularyPtr load_token_list(const std::string& path);
VocabularyPtr token_list_from_bytes(std::string bytes, const std::string& name_for_errors);

}  // namespace lacuna
