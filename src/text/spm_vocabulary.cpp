#include <sentencepiece_processor.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "text/bpe_dropout.h"
#include "text/normalization.h"
#include "text/spm_file.h"
#include "text/vocabulary.h"

#ifdef LACUNA_HAS_COMMON_FLAG
/// SentencePiece and LibTorch each define a variable of this name, of 32 and 4 bytes, which the dynamic linker merges.
/// This one takes precedence and has room for both: in LibTorch's, SentencePiece would overwrite what follows.
extern "C" {
alignas(16) char FLAGS_minloglevel[64];
}
#endif

namespace lacuna {
namespace {

using sentencepiece::ImmutableNBestSentencePieceText;
using sentencepiece::ImmutableSentencePieceText;
using sentencepiece::SentencePieceProcessor;

/// Returns the index of the space-separated word of `line` that contains each byte of `starts`, padded to `size`
/// entries with the number of words (for eos).
std::vector<int32_t> words_at(std::string_view line, const std::vector<int32_t>& starts, size_t size) {
  std::vector<int32_t> word_of_byte(line.size() + 1);
  int32_t words = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != ' ' && (i == 0 || line[i - 1] == ' ')) ++words;
    word_of_byte[i] = words > 0 ? words - 1 : 0;
  }
  word_of_byte[line.size()] = words > 0 ? words - 1 : 0;
  std::vector<int32_t> result;
  result.reserve(size);
  for (const int32_t start : starts) result.push_back(word_of_byte[static_cast<size_t>(start)]);
  result.resize(size, words);
  return result;
}

/// A SentencePiece model with renumbered ids: unk is 0, bos 1, eos 2, and there is no padding.
class SpmVocabulary : public Vocabulary {
 public:
  SpmVocabulary(std::string bytes, const std::string& name, Side side) : file_(bytes, name), bytes_(std::move(bytes)) {
    const std::optional<std::string> for_targets = side == Side::kTgt ? model_for_targets(bytes_) : std::nullopt;
    if (for_targets) file_ = SpmFile(*for_targets, name);
    const auto status = processor_.LoadFromSerializedProto(for_targets.value_or(bytes_));
    if (!status.ok() || processor_.GetPieceSize() == 0) throw DataError(name + ": is not a SentencePiece model; expected a .model file");
    renumber();
    std::vector<std::vector<int>> segmentations;
    is_unigram_ = processor_.NBestEncode("a", 2, &segmentations).ok();
    if (!is_unigram_) find_whole_pieces();
    normalization_ = rule_of(for_targets.value_or(bytes_));
  }

  int64_t size() const override { return static_cast<int64_t>(pieces_.size()); }
  bool is_sentencepiece() const override { return true; }
  std::string normalization() const override { return normalization_; }
  const std::string& piece(TokenId id) const override { return pieces_.at(static_cast<size_t>(id)); }
  const std::string& serialized() const override { return bytes_; }

  std::vector<TokenId> encode(std::string_view line) const override {
    std::vector<int> ids;
    processor_.Encode(file_.shortened(line).text, &ids).IgnoreError();
    return ours(ids);
  }

  std::vector<TokenId> sample(std::string_view line, double alpha, int64_t nbest, uint64_t random_key) const override {
    if (alpha <= 0) return encode(line);
    const std::string text = file_.shortened(line).text;
    return is_unigram_ ? sample_segmentation(text, alpha, nbest, random_key) : drop_merges(text, alpha, random_key);
  }

  std::string decode(std::span<const TokenId> ids) const override {
    std::string text;
    processor_.Decode(theirs(ids), &text).IgnoreError();
    return text;
  }

  TokenId id_of(std::string_view piece) const override {
    const int theirs = processor_.PieceToId(view(piece));  // looked up first: a model may have "</s>" as a piece of text
    if (!processor_.IsUnknown(theirs)) return to_ours_[static_cast<size_t>(theirs)];
    return piece == pieces_[kBos] ? kBos : piece == pieces_[kEos] ? kEos : kUnk;
  }

  std::vector<int32_t> words_of(std::string_view line, std::span<const TokenId> ids) const override {
    const std::span<const TokenId> pieces = ids.first(ids.size() - (!ids.empty() && ids.back() == kEos ? 1 : 0));
    const ShortenedLine shortened = file_.shortened(line);
    const ImmutableSentencePieceText best = processor_.EncodeAsImmutableProto(shortened.text);
    if (has_ids(best, pieces)) {
      std::vector<int32_t> starts = piece_starts(best, shortened.text);
      for (int32_t& start : starts) start = static_cast<int32_t>(shortened.place_in_line(static_cast<size_t>(start)));
      return words_at(line, starts, ids.size());
    }
    const ImmutableSentencePieceText decoded =
        processor_.DecodeIdsAsImmutableProto(theirs(pieces));  // search may segment a line differently
    if (decoded.text() == line && decoded.pieces_size() == pieces.size()) return words_at(line, piece_starts(decoded, line), ids.size());
    return words_by_markers(ids);
  }

 private:
  static absl::string_view view(std::string_view text) { return {text.data(), text.size()}; }

  void renumber() {
    const int unk = processor_.unk_id(), bos = processor_.bos_id(), eos = processor_.eos_id();
    pieces_ = {processor_.IdToPiece(unk), bos >= 0 ? processor_.IdToPiece(bos) : "<s>", eos >= 0 ? processor_.IdToPiece(eos) : "</s>"};
    to_theirs_ = {unk, bos >= 0 ? bos : unk, eos >= 0 ? eos : unk};
    to_ours_.assign(static_cast<size_t>(processor_.GetPieceSize()), kUnk);
    if (bos >= 0) to_ours_[static_cast<size_t>(bos)] = kBos;
    if (eos >= 0) to_ours_[static_cast<size_t>(eos)] = kEos;
    for (int id = 0; id < processor_.GetPieceSize(); ++id) {
      if (id == unk || id == bos || id == eos || id == processor_.pad_id()) continue;
      to_ours_[static_cast<size_t>(id)] = static_cast<TokenId>(pieces_.size());
      to_theirs_.push_back(id);
      pieces_.push_back(processor_.IdToPiece(id));
    }
  }

  /// Finds user-defined symbols, which SentencePiece does not list: in a vocabulary restricted to nothing, only these,
  /// special pieces and single characters stay in use.
  void find_whole_pieces() {
    SentencePieceProcessor restricted;
    restricted.LoadFromSerializedProto(bytes_).IgnoreError();
    restricted.SetVocabulary({}).IgnoreError();
    for (int id = 0; id < processor_.GetPieceSize(); ++id) is_whole_.push_back(processor_.IsByte(id) || !restricted.IsUnused(id));
    is_whole_[static_cast<size_t>(processor_.unk_id())] = false;  // unknown characters of a text
  }

  bool has_ids(const ImmutableSentencePieceText& text, std::span<const TokenId> ids) const {
    if (text.pieces_size() != ids.size()) return false;
    for (size_t i = 0; i < ids.size(); ++i)
      if (to_ours_[text.pieces(static_cast<int>(i)).id()] != ids[i]) return false;
    return true;
  }

  /// Returns the byte offset in the line at which each piece begins, after leading spaces.
  static std::vector<int32_t> piece_starts(const ImmutableSentencePieceText& text, std::string_view line) {
    std::vector<int32_t> starts;
    for (const auto& piece : text.pieces()) {
      uint32_t at = piece.begin();
      while (at < piece.end() && at < line.size() && line[at] == ' ') ++at;
      starts.push_back(static_cast<int32_t>(at));
    }
    return starts;
  }

  /// Converts ids to the model's own, without bos and eos.
  std::vector<int> theirs(std::span<const TokenId> ids) const {
    std::vector<int> theirs;
    for (const TokenId id : ids)
      if (id != kBos && id != kEos) theirs.push_back(to_theirs_.at(static_cast<size_t>(id)));
    return theirs;
  }
  /// Converts the model's own ids to ours.
  std::vector<TokenId> ours(const std::vector<int>& theirs) const {
    std::vector<TokenId> ids;
    ids.reserve(theirs.size() + 1);
    for (const int id : theirs) ids.push_back(to_ours_[static_cast<size_t>(id)]);
    return ids;
  }

  /// Draws one of the n best segmentations with probability proportional to P^alpha (Kudo 2018, arXiv:1804.10959).
  std::vector<TokenId> sample_segmentation(std::string_view line, double alpha, int64_t nbest, uint64_t random_key) const {
    const ImmutableNBestSentencePieceText all = processor_.NBestEncodeAsImmutableProto(view(line), static_cast<int>(nbest));
    if (all.nbests_size() == 0) return encode(line);
    std::vector<double> ends;  // cumulative weights of the segmentations
    for (size_t i = 0; i < all.nbests_size(); ++i) {
      const double weight = std::exp(alpha * (all.nbests(static_cast<int>(i)).score() - all.nbests(0).score()));
      ends.push_back((ends.empty() ? 0 : ends.back()) + weight);
    }
    const double draw = RandomStream(random_key).next_unit() * ends.back();
    const auto chosen = std::min<ptrdiff_t>(std::upper_bound(ends.begin(), ends.end(), draw) - ends.begin(), std::ssize(ends) - 1);
    std::vector<int> ids;
    for (const auto& piece : all.nbests(static_cast<int>(chosen)).pieces()) ids.push_back(static_cast<int>(piece.id()));
    return ours(ids);
  }

  /// Segments by BPE-dropout. Control pieces are never produced: "</s>" in a text is text.
  std::vector<TokenId> drop_merges(std::string_view line, double dropout, uint64_t random_key) const {
    const auto score_of = [&](const std::string& piece) -> std::optional<float> {
      const int id = processor_.PieceToId(piece);
      if (processor_.IsUnknown(id) || processor_.IsControl(id) || processor_.IsUnused(id)) return std::nullopt;
      return processor_.GetScore(id);
    };
    std::vector<TokenId> ids;
    for (const std::string& piece : bpe_with_dropout(initial_symbols(line), score_of, dropout, random_key)) {
      const TokenId id = id_of(piece);
      if (id != kUnk || ids.empty() || ids.back() != kUnk)
        ids.push_back(id);  // adjacent unknown characters are one unknown token, as in `encode`
    }
    return ids;
  }

  /// Returns the symbols that merging starts from: the characters of the normalized line, with byte pieces (of a model
  /// with byte fallback) and user-defined symbols whole.
  std::vector<std::string> initial_symbols(std::string_view line) const {
    const ImmutableSentencePieceText best = processor_.EncodeAsImmutableProto(view(line));
    std::vector<std::string> symbols;
    for (const auto& piece : best.pieces()) {
      if (is_whole_[piece.id()]) {
        symbols.push_back(piece.piece());
        continue;
      }
      for (const char c : piece.piece()) {
        const bool continues = (static_cast<unsigned char>(c) & 0xC0u) == 0x80u;
        if (continues && !symbols.empty())
          symbols.back() += c;
        else
          symbols.emplace_back(1, c);
      }
    }
    return symbols;
  }

  /// Returns word indices by the pieces' word-start markers, for ids that are no segmentation of the line.
  std::vector<int32_t> words_by_markers(std::span<const TokenId> ids) const {
    std::vector<int32_t> words;
    int32_t word = -1;
    for (const TokenId id : ids) {
      if (id == kEos || word < 0 || piece(id).starts_with("\xE2\x96\x81")) ++word;
      words.push_back(word);
    }
    return words;
  }

  SpmFile file_;  // first: it checks the bytes before the library reads them
  std::string bytes_, normalization_;
  SentencePieceProcessor processor_;
  std::vector<std::string> pieces_;  // by our ids
  std::vector<TokenId> to_ours_;     // by the model's ids
  std::vector<int> to_theirs_;       // by our ids
  bool is_unigram_ = true;
  std::vector<bool> is_whole_;  // by the model's ids, for BPE: pieces that sampling does not split
};

}  // namespace

VocabularyPtr sentencepiece_from_bytes(std::string bytes, const std::string& name_for_errors, Side side) {
  return std::make_shared<SpmVocabulary>(std::move(bytes), name_for_errors, side);
}

VocabularyPtr load_sentencepiece(const std::string& path, Side side) {
  require_readable_file(path, "a SentencePiece model");
  return sentencepiece_from_bytes(read_file(path), path, side);
}

Vocabularies for_both_sides(const VocabularyPtr& vocabulary) {
  if (!vocabulary->is_sentencepiece() || !model_for_targets(vocabulary->serialized())) return {vocabulary, vocabulary};
  return {vocabulary, sentencepiece_from_bytes(vocabulary->serialized(), "the vocabulary", Side::kTgt), true};
}

}  // namespace lacuna
