#pragma once

#include "exchange/import.h"
#include "exchange/incoming_files.h"
#include "exchange/incoming_json.h"
#include "exchange/incoming_model.h"

namespace lacuna {

/// What a folder of transformers says of its tokens.
struct HuggingFaceTokens {
  PieceOrder src, tgt;
  Vocabularies vocabularies;
  std::vector<std::string> never;  ///< pieces that are no text, which no translation is to hold
  std::string place;               ///< the file of ids, for errors
  std::string src_lang, tgt_lang;  ///< language codes; empty = not said
};

/// Reads a MarianTokenizer: source.spm, target.spm, vocab.json, and target_vocab.json where the ids of the sides differ.
HuggingFaceTokens marian_tokens(IncomingFiles& files, const IncomingJson& config, const ImportRequest& request);
/// Reads an M2M100Tokenizer (sentencepiece.bpe.model, vocab.json) or NllbTokenizer (sentencepiece.bpe.model, and language codes in
/// tokenizer_config.json or special_tokens_map.json).
HuggingFaceTokens m2m100_tokens(IncomingFiles& files, const IncomingJson& config, const ImportRequest& request);

}  // namespace lacuna
