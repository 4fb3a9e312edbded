#include "exchange/huggingface_tokens.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "base/spelling.h"
#include "text/piece_list.h"

namespace lacuna {
namespace {

constexpr uint64_t kMostTokenizer = 4 << 20;

constexpr char kIds[] = "vocab.json", kTgtIds[] = "target_vocab.json", kTokenizer[] = "tokenizer_config.json";

/// The language codes of M2M100 and SMaLL-100, and of WMT21's models, in the order of their ids: their tokenizers know them by heart.
constexpr char kCodesOfM2m100[] =
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu "
    "hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt "
    "ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu";
constexpr char kCodesOfWmt21[] = "en ha is ja cs ru zh de";

using PiecesById = std::map<int64_t, std::string>;

/// Reads {"piece": id, ...}.
PiecesById pieces_by_id(IncomingFiles& files, const std::string& name) {
  PiecesById pieces;
  const nlohmann::json json = files.json(name, kMostList);
  for (const auto& [piece, id] : json.items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
      throw DataError(files.path(name) + ": the id of \"" + piece.substr(0, 60) + "\" is none; expected a whole number");
    if (const auto [other, is_new] = pieces.emplace(id.get<int64_t>(), piece); !is_new)
      throw DataError(fmt::format("{}: \"{}\" and \"{}\" have one id, {}; expected one for each piece", files.path(name), other->second,
                                  piece, other->first));
  }
  return pieces;
}

/// Throws unless the ids are 0, 1, 2, ...
void require_no_holes(const PiecesById& pieces, const std::string& path) {
  int64_t expected = 0;
  for (const auto& [id, piece] : pieces)
    if (id != expected++) throw DataError(fmt::format("{}: no piece has the id {}; expected one for each id", path, expected - 1));
}

int64_t id_of(const PiecesById& pieces, const std::string& piece, const std::string& path) {
  const auto found = std::ranges::find_if(pieces, [&](const auto& entry) { return entry.second == piece; });
  if (found == pieces.end()) throw DataError(path + ": has no piece \"" + piece + "\", which stands for what is unknown");
  return found->first;
}

/// Checks an id of the configuration.
int64_t special_id(const IncomingJson& config, const std::string& key, const PiecesById& pieces) {
  const int64_t id = config.required(key);
  if (!pieces.contains(id)) config.refuse(key, "the id of a piece");
  return id;
}

IncomingJson tokenizer_of(IncomingFiles& files) {
  if (files.has(kTokenizer)) return {files.json(kTokenizer, kMostTokenizer), files.path(kTokenizer)};
  return {nlohmann::json::object(), files.path(kTokenizer)};
}

HuggingFaceTokens with_vocabularies(HuggingFaceTokens tokens, IncomingFiles& files, const std::string& src_spm, const std::string& tgt_spm,
                                    const ImportRequest& request) {
  require_tag(request.src_tag, "--src-tag", tokens.src);
  require_tag(request.tgt_tag, "--tgt-tag", tokens.tgt);
  tokens.vocabularies = vocabularies_of({files.text(src_spm, kMostSpm), files.path(src_spm), tokens.src.pieces, request.src_tag},
                                        {files.text(tgt_spm, kMostSpm), files.path(tgt_spm), tokens.tgt.pieces, request.tgt_tag});
  return tokens;
}

/// Returns tokens that a tokenizer has beside its SentencePiece model, by id; those that a list names get ids from `first` on.
PiecesById added_tokens(IncomingFiles& files, const IncomingJson& tokenizer, int64_t first) {
  PiecesById added;
  const nlohmann::json by_id = tokenizer.object("added_tokens_decoder");
  for (const auto& [id, token] : by_id.items()) {
    const bool is_number = !id.empty() && id.size() < 10 && std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number || !token.is_object() || !token.contains("content") || !token["content"].is_string())
      tokenizer.refuse("added_tokens_decoder", "{\"id\": {\"content\": token, ...}, ...}");
    added[std::stoll(id)] = token["content"].get<std::string>();
  }
  if (files.has("added_tokens.json")) added.merge(pieces_by_id(files, "added_tokens.json"));
  if (std::ranges::any_of(added, [](const auto& entry) { return is_language_code(entry.second); })) return added;
  std::vector<nlohmann::json> listed = tokenizer.list("additional_special_tokens");
  if (listed.empty() && tokenizer.has_list("extra_special_tokens")) listed = tokenizer.list("extra_special_tokens");  // names, in version 4
  if (constexpr char kMap[] = "special_tokens_map.json"; listed.empty() && files.has(kMap))
    listed = IncomingJson(files.json(kMap, kMostTokenizer), files.path(kMap)).list("additional_special_tokens");
  for (const nlohmann::json& token : listed)
    if (token.is_string() && is_language_code(token.get<std::string>())) added[first++] = token.get<std::string>();
  const std::string known = tokenizer.text("language_codes").value_or(files.has(kIds) ? "m2m100" : "");
  std::istringstream codes;
  if (known == "m2m100") codes.str(kCodesOfM2m100);
  if (known == "wmt21") codes.str(kCodesOfWmt21);
  for (std::string code; listed.empty() && codes >> code;) added[first++] = "__" + code + "__";
  return added;
}

/// The ids of NLLB: four special tokens, then the pieces of the SentencePiece model from its fourth on.
PiecesById nllb_pieces(IncomingFiles& files, const std::string& spm) {
  const VocabularyPtr model = sentencepiece_from_bytes(files.text(spm, kMostSpm), files.path(spm));
  PiecesById pieces = {{0, "<s>"}, {1, "<pad>"}, {2, "</s>"}, {3, "<unk>"}};
  for (TokenId id = kEos + 1; id < model->size(); ++id) pieces[id + 1] = model->piece(id);
  return pieces;
}

}  // namespace

HuggingFaceTokens marian_tokens(IncomingFiles& files, const IncomingJson& config, const ImportRequest& request) {
  const IncomingJson tokenizer = tokenizer_of(files);
  const PiecesById src = pieces_by_id(files, kIds);
  const bool has_both = tokenizer.flag("separate_vocabs").value_or(files.has(kTgtIds));
  const PiecesById tgt = has_both ? pieces_by_id(files, kTgtIds) : src;
  if (!has_both) require_no_holes(src, files.path(kIds));
  const std::string unk = tokenizer.text("unk_token").value_or("<unk>"), place = files.path(has_both ? kTgtIds : kIds);
  const auto order = [&](const PiecesById& pieces, const std::string& name) {
    return order_of(pieces, id_of(pieces, unk, files.path(name)), special_id(config, "decoder_start_token_id", pieces),
                    special_id(config, "eos_token_id", pieces));
  };
  HuggingFaceTokens tokens{order(src, kIds), order(tgt, has_both ? kTgtIds : kIds), {}, {}, place, {}, {}};
  if (const auto pad = config.number("pad_token_id"); pad && *pad != tokens.tgt.rows[kBos] && *pad != tokens.tgt.rows[kEos])
    config.refuse("pad_token_id", "decoder_start_token_id, as Marian models have it");
  tokens.src_lang = request.src_lang.empty() ? tokenizer.text("source_lang").value_or("") : request.src_lang;
  tokens.tgt_lang = request.tgt_lang.empty() ? tokenizer.text("target_lang").value_or("") : request.tgt_lang;
  return with_vocabularies(std::move(tokens), files, "source.spm", "target.spm", request);
}

HuggingFaceTokens m2m100_tokens(IncomingFiles& files, const IncomingJson& config, const ImportRequest& request) {
  constexpr int64_t kMostMadeUp = 256;
  const std::string spm = "sentencepiece.bpe.model";
  const IncomingJson tokenizer = tokenizer_of(files);
  if (tokenizer.flag("legacy_behaviour").value_or(false)) tokenizer.refuse("legacy_behaviour", "false: language codes stand before a text");
  PiecesById pieces = files.has(kIds) ? pieces_by_id(files, kIds) : nllb_pieces(files, spm);
  require_no_holes(pieces, files.path(files.has(kIds) ? kIds : spm));
  HuggingFaceTokens tokens;
  tokens.place = files.path(files.has(kIds) ? kIds : spm);
  for (const auto& [id, token] : added_tokens(files, tokenizer, std::ssize(pieces)))
    if (!pieces.emplace(id, token).second && pieces[id] != token)
      throw DataError(fmt::format("{}: \"{}\" and \"{}\" have one id, {}; use the files that belong together", tokenizer.path(), pieces[id],
                                  token, id));
  const int64_t size = config.required("vocab_size"), missing = size - std::ssize(pieces);
  if (missing > kMostMadeUp)
    throw DataError(
        fmt::format("{}: has {} tokens, the model {}; is the list of language codes (added_tokens_decoder or "
                    "additional_special_tokens in {}) missing?",
                    files.folder(), pieces.size(), size, kTokenizer));
  int64_t made_up = 0;
  for (int64_t id = 0; id < size; ++id)
    if (const auto [entry, is_new] = pieces.emplace(id, fmt::format("madeupword{:04}", made_up)); is_new && ++made_up > 0)
      tokens.never.push_back(entry->second);  // rows without a token, as fairseq adds them, take part in the softmax
  for (const char* const special : {"<s>", "<pad>", "<mask>"})
    if (std::ranges::any_of(pieces, [&](const auto& entry) { return entry.second == special; })) tokens.never.emplace_back(special);
  const int64_t eos = special_id(config, "eos_token_id", pieces);
  if (special_id(config, "decoder_start_token_id", pieces) != eos) config.refuse("decoder_start_token_id", "eos_token_id");
  tokens.src = tokens.tgt = order_of(pieces, id_of(pieces, tokenizer.text("unk_token").value_or("<unk>"), tokens.place), {}, eos);
  tokens.src_lang = request.src_lang;
  tokens.tgt_lang = request.tgt_lang;
  if (const std::vector<std::string> tags = language_tags(tokens.src.pieces);
      request.src_tag.empty() && request.tgt_tag.empty() && !tags.empty())
    log_warning(
        "no language is set: lines begin with the token of theirs, such as {} (of {}), and --prefix of `translate` has that of the "
        "translation; --src-tag and --tgt-tag set them for good",
        tags.front(), counted(std::ssize(tags), "language"));
  return with_vocabularies(std::move(tokens), files, spm, spm, request);
}

}  // namespace lacuna
