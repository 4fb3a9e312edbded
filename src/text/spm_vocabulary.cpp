#include <sentencepiece_processor.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/files.h"
#include "base/random.h"
#include "text/bpe_dropout.h"
#include "text/normalization.h"
#include "text/piece_list.h"
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

/// A SentencePiece model with renumbered ids: unk is 0, bos 1, eos 2, and there is no padding; or with the ids of a list (piece_list.h).
class SpmVocabulary : public Vocabulary {
 public:
  SpmVocabulary(std::string bytes, const std::string& name, Side side) : file_(bytes, name), bytes_(std::move(bytes)) {
    const std::optional<std::string> for_targets = side == Side::kTgt ? model_for_targets(bytes_) : std::nullopt;
    const std::string& model = for_targets ? *for_targets : bytes_;
    if (for_targets) file_ = SpmFile(model, name);
    load_spm(processor_, model, name);
    if (const std::optional<PieceList> list = piece_list_of(model, name))
      number_by(*list);
    else
      renumber();
    std::vector<std::vector<int>> segmentations;
    is_unigram_ = processor_.NBestEncode("a", 2, &segmentations).ok();
    if (!is_unigram_) find_whole_pieces(model, name);
    normalization_ = rule_of(model);
  }

  int64_t size() const override { return static_cast<int64_t>(pieces_.size()); }
  bool is_sentencepiece() const override { return true; }
  std::string normalization() const override { return normalization_; }
  const std::string& piece(TokenId id) const override { return pieces_.at(static_cast<size_t>(id)); }
  const std::string& serialized() const override { return bytes_; }

  TokenId start() const override { return start_; }

  std::vector<TokenId> encode(std::string_view line) const override {
    if (has_list())
      return with_tag(line, [this](std::string_view text) { return ours(processor_.EncodeAsImmutableProto(file_.shortened(text).text)); });
    std::vector<int> ids;
    processor_.Encode(file_.shortened(line).text, &ids).IgnoreError();
    return ours(ids);
  }

  std::vector<TokenId> sample(std::string_view line, double alpha, int64_t nbest, uint64_t random_key) const override {
    if (alpha <= 0) return encode(line);
    return with_tag(line, [&](std::string_view rest) {
      const std::string text = file_.shortened(rest).text;
      return is_unigram_ ? sample_segmentation(text, alpha, nbest, random_key) : drop_merges(text, alpha, random_key);
    });
  }

  std::string decode(std::span<const TokenId> ids) const override {
    std::string text;
    if (has_list()) {
      processor_.Decode(shown(ids), &text).IgnoreError();
      return with_spaces(std::move(text));
    }
    processor_.Decode(theirs(ids), &text).IgnoreError();
    return text;
  }

  TokenId id_of(std::string_view piece) const override {
    if (has_list()) return listed(piece);
    const int theirs = processor_.PieceToId(view(piece));  // looked up first: a model may have "</s>" as a piece of text
    if (!processor_.IsUnknown(theirs)) return to_ours_[static_cast<size_t>(theirs)];
    return piece == pieces_[kBos] ? kBos : piece == pieces_[kEos] ? kEos : kUnk;
  }

  std::vector<int32_t> words_of(std::string_view line, std::span<const TokenId> ids) const override {
    const std::span<const TokenId> tokens = ids.first(ids.size() - (!ids.empty() && ids.back() == kEos ? 1 : 0));
    const Tag tag = tag_of(line);
    const bool has_tag = tag.id && !tokens.empty() && tokens.front() == *tag.id;  // it belongs to the first word
    const std::span<const TokenId> pieces = tokens.subspan(has_tag ? 1 : 0);
    const std::string_view text = line.substr(has_tag ? tag.length : 0);
    std::vector<int32_t> starts(has_tag ? 1 : 0);
    const auto add_starts = [&](const ImmutableSentencePieceText& cut, std::string_view cut_text, auto place) {
      for (const int32_t start : piece_starts(cut, cut_text))
        starts.push_back(static_cast<int32_t>(line.size() - text.size() + place(static_cast<size_t>(start))));
      return words_at(line, starts, ids.size());
    };
    const ShortenedLine shortened = file_.shortened(text);
    const ImmutableSentencePieceText best = processor_.EncodeAsImmutableProto(shortened.text);
    if (has_ids(best, pieces)) return add_starts(best, shortened.text, [&](size_t start) { return shortened.place_in_line(start); });
    const ImmutableSentencePieceText decoded =
        has_list() ? processor_.DecodePiecesAsImmutableProto(shown(pieces))
                   : processor_.DecodeIdsAsImmutableProto(theirs(pieces));  // search may segment differently
    if (decoded.text() == text && decoded.pieces_size() == pieces.size())
      return add_starts(decoded, text, [](size_t start) { return start; });
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

  bool has_list() const { return !ids_of_listed_.empty(); }

  void number_by(const PieceList& list) {
    pieces_ = list.pieces;
    for (const std::string& piece : pieces_) ids_of_listed_.emplace(piece, static_cast<TokenId>(ids_of_listed_.size()));
    to_ours_.assign(static_cast<size_t>(processor_.GetPieceSize()), kUnk);
    std::vector<bool> is_cut(pieces_.size());  // SentencePiece makes it of text
    for (int id = 0; id < processor_.GetPieceSize(); ++id) {
      if (processor_.IsControl(id) || processor_.IsUnknown(id)) continue;  // never made of text
      to_ours_[static_cast<size_t>(id)] = of_text(processor_.IdToPiece(id));
      is_cut[static_cast<size_t>(to_ours_[static_cast<size_t>(id)])] = true;
    }
    is_code_.resize(pieces_.size());
    for (size_t id = kEos + 1; id < pieces_.size(); ++id) is_code_[id] = !is_cut[id] && is_language_code(pieces_[id]);
    if (!list.start.empty()) start_ = listed(list.start);
  }

  TokenId listed(std::string_view piece) const {
    const auto found = ids_of_listed_.find(std::string(piece));
    return found == ids_of_listed_.end() ? kUnk : found->second;
  }
  /// Returns the listed id of a piece that SentencePiece has made of text, in which "</s>" ends nothing.
  TokenId of_text(std::string_view piece) const {
    const TokenId id = listed(piece);
    return id > kEos ? id : kUnk;
  }

  /// The tag that a line of a model with a list begins with.
  struct Tag {
    std::optional<TokenId> id;
    size_t length = 0;  ///< of the line's bytes; 0 = it is not in the line
  };
  Tag tag_of(std::string_view line) const {
    if (!has_list()) return {};
    if (const size_t length = length_of_bracketed_tag(line); length > 0) return {of_text(line.substr(0, length)), length};
    const std::string_view word = line.substr(0, line.find(' '));
    if (const TokenId id = is_language_code(word) ? listed(word) : kUnk; id != kUnk && is_code_[static_cast<size_t>(id)])
      return {id, word.size()};
    return {start_ == kUnk ? std::nullopt : std::optional(start_), 0};
  }

  /// Returns the ids of a line, whose text after its tag `cut` makes pieces of. A line without text gets no tag.
  template <class Cut>
  std::vector<TokenId> with_tag(std::string_view line, const Cut& cut) const {
    const Tag tag = tag_of(line);
    std::vector<TokenId> ids = cut(line.substr(tag.length));
    if (tag.id && (tag.length > 0 || !ids.empty())) ids.insert(ids.begin(), *tag.id);
    return ids;
  }

  /// Replaces word marks, which SentencePiece leaves in pieces of the list alone.
  static std::string with_spaces(std::string text) {
    constexpr std::string_view kMark = "\xE2\x96\x81";
    for (size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) text.replace(at, kMark.size(), " ");
    return text.starts_with(' ') ? text.substr(1) : text;
  }

  /// Returns the pieces that a text is made of again, by their names: those of the list alone are no pieces of the model.
  std::vector<std::string> shown(std::span<const TokenId> ids) const {
    std::vector<std::string> pieces;
    for (const TokenId id : ids)
      if (id != kBos && id != kEos && !is_code_.at(static_cast<size_t>(id))) pieces.push_back(piece(id));
    return pieces;
  }

  /// Finds user-defined symbols, which SentencePiece does not list: in a vocabulary restricted to nothing, only these,
  /// special pieces and single characters stay in use.
  void find_whole_pieces(const std::string& model, const std::string& name) {
    SentencePieceProcessor restricted;
    load_spm(restricted, model, name);
    restricted.SetVocabulary({}).IgnoreError();
    for (int id = 0; id < processor_.GetPieceSize(); ++id) is_whole_.push_back(processor_.IsByte(id) || !restricted.IsUnused(id));
    is_whole_[static_cast<size_t>(processor_.unk_id())] = false;  // unknown characters of a text
  }

  bool has_ids(const ImmutableSentencePieceText& text, std::span<const TokenId> ids) const {
    if (text.pieces_size() != ids.size()) return false;
    return std::ranges::equal(ours(text), ids);
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
  /// Converts the pieces of a text. What the model does not know may be a piece of the list, as one of the other side's.
  template <class Text>
  std::vector<TokenId> ours(const Text& text) const {
    std::vector<TokenId> ids;
    ids.reserve(text.pieces_size() + 1);
    for (const auto& piece : text.pieces()) {
      const TokenId id = to_ours_[piece.id()];
      ids.push_back(id == kUnk && has_list() ? of_text(piece.piece()) : id);
    }
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
    return ours(all.nbests(static_cast<int>(chosen)));
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
  std::vector<int> to_theirs_;       // by our ids; not where there is a list
  std::unordered_map<std::string, TokenId> ids_of_listed_;
  std::vector<bool> is_code_;  // by our ids, where there is a list: a language code
  TokenId start_ = kUnk;
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
