#pragma once

#include "exchange/file_sink.h"
#include "exchange/model_card.h"
#include "exchange/outgoing_model.h"

/// Folders of Hugging Face transformers:
///
///   config.json, model.safetensors         post-norm: MarianMTModel; pre-norm: PegasusForConditionalGeneration
///   generation_config.json                 search: beam, length penalty, longest translation, tokens that never come
///   source.spm, target.spm, vocab.json     MarianTokenizer: pieces by SentencePiece, ids by the list; target_vocab.json where the ids of
///   tokenizer_config.json                  the sides differ
///   README.md                              the model card
///
/// bos is both padding and the decoder's start there. Pegasus has one embedding for both sides; where ours are two, its table holds the
/// rows of both, and the source's logits have a bias of -1e9, with which they are exactly nothing.
namespace lacuna {

/// Throws CheckpointError, naming the key, for what transformers has no model of.
void require_huggingface_has(const OutgoingModel& model);
void write_huggingface(FileSink& files, OutgoingModel model, const ModelTerms& terms);

}  // namespace lacuna
