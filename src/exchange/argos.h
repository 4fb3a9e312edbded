#pragma once

#include "base/precision.h"
#include "exchange/file_sink.h"
#include "exchange/model_card.h"
#include "exchange/outgoing_model.h"

/// Packages of Argos Translate, which LibreTranslate uses: a zip archive of one folder,
///
///   metadata.json          the languages
///   model/                 as CTranslate2 has it: ctranslate2.h
///   sentencepiece.model    of both sides
///   README.md
namespace lacuna {

/// Throws CheckpointError, naming the key, for a model without languages, or with two vocabularies.
void require_argos_has(const OutgoingModel& model);
void write_argos(FileSink& files, const OutgoingModel& model, Precision precision, const ModelTerms& terms);

}  // namespace lacuna
