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

/// Converts between text and ids of one side, by a SentencePiece model or a token list. Immutable and safe for threads.
class Vocabulary {
 public:
  virtual ~Vocabulary() = default;

  virtual int64_t size() const = 0;
  /// Returns the best segmentation of a line, without eos. The line must be valid UTF-8.
  virtual std::vector<TokenId> encode(std::string_view line) const = 0;
  /// Draws a segmentation for subword regularization: `alpha` smooths the distribution over the `nbest` segmentations
  /// (unigram), or is the probability to drop a merge (bpe). A pure function of the line and `random_key`.
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
  /// Returns the token that `encode` puts before a line without a tag (piece_list.h); kUnk if there is none. Translations begin with it.
  virtual TokenId start() const { return kUnk; }
  /// Returns the rule by which lines are normalized, by SentencePiece's name for it; "identity" for a token list.
  virtual std::string normalization() const = 0;
};

using VocabularyPtr = std::shared_ptr<const Vocabulary>;

/// The vocabularies of both sides. If they share one it is the same object, or one for each where they normalize text by
/// different rules.
struct Vocabularies {
  VocabularyPtr src, tgt;
  bool have_one_file = false;
  bool shared() const { return have_one_file || src == tgt; }
};

/// Returns the first difference between the pieces of two vocabularies, with `side` ("source" or "target") in words;
/// empty if the same ids stand for the same pieces. The two may still segment a line differently.
inline std::string vocabulary_difference(const Vocabulary& first, const Vocabulary& second, const std::string& side) {
  const std::string both = "their " + side + " vocabularies";
  if (first.size() != second.size())
    return both + " have " + std::to_string(first.size()) + " and " + std::to_string(second.size()) + " pieces";
  for (TokenId id = 0; id < first.size(); ++id)
    if (first.piece(id) != second.piece(id))
      return "piece " + std::to_string(id) + " of " + both + " is \"" + first.piece(id) + "\" and \"" + second.piece(id) + "\"";
  return "";
}

enum class Side { kSrc, kTgt };

/// Reads a SentencePiece model and renumbers its pieces: unk 0, bos 1, eos 2, then the others in the model's order,
/// without padding. The side matters for a file with a rule of normalization for each. Throws DataError if the file is
/// not a model.
VocabularyPtr load_sentencepiece(const std::string& path, Side side = Side::kSrc);
VocabularyPtr sentencepiece_from_bytes(std::string bytes, const std::string& name_for_errors, Side side = Side::kSrc);
/// Makes one vocabulary, read for the source, that of both sides.
Vocabularies for_both_sides(const VocabularyPtr& vocabulary);
/// Reads a token list, one token a line; <unk>, <s> and </s> are prepended if missing. Throws DataError with the line.
VocabularyPtr load_token_list(const std::string& path);
VocabularyPtr token_list_from_bytes(std::string bytes, const std::string& name_for_errors);

}  // namespace lacuna
