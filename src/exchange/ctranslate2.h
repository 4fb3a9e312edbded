#pragma once

#include "base/precision.h"
#include "exchange/file_sink.h"
#include "exchange/model_card.h"
#include "exchange/outgoing_model.h"

/// Folders of CTranslate2:
///
///   model.bin                  version 6 of its format: "TransformerSpec", revision 7; variables by names, in their order; aliases
///   config.json                special tokens
///   shared_vocabulary.json     pieces by ids, or source_vocabulary.json and target_vocabulary.json
///   source.spm, target.spm     SentencePiece models, for whoever cuts text into pieces; none for text that is tokenized already
///   README.md                  how to use it
///
/// A string is two bytes, its length with the NUL at its end, and its bytes. A variable is its name; a byte, its dimensions, and four for
/// the size of each; a byte, its type (float 0, int8 1, int16 2); four for its bytes; these. An alias is its name and that of a variable.
namespace lacuna {

/// Throws CheckpointError, naming the key and what to do, if the model has what the format cannot hold.
void require_ctranslate2_has(const OutgoingModel& model);
/// Weights of linear layers and embeddings are kFp32, or kInt8 with a scale for each row.
void write_ctranslate2(FileSink& files, const OutgoingModel& model, Precision precision);
/// Returns how such a folder is used, in Markdown.
std::string use_of_ctranslate2(const OutgoingModel& model);

}  // namespace lacuna
