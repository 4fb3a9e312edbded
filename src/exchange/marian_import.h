#pragma once

#include "exchange/import.h"
#include "exchange/incoming_files.h"
#include "exchange/incoming_model.h"

/// Models of Marian (https://github.com/marian-nmt/marian-dev): NAME.npz, whose array special:model.yml is its configuration; vocabularies:
/// lists of pieces (.yml) with source.spm and target.spm, as Opus-MT publishes them, or SentencePiece models (.spm) that Marian itself cuts
/// text by; decoder.yml, the search. They compute what Marian computes: its positions, its norms, its start of the decoder.
namespace lacuna {

/// Reads the model NAME.npz of a folder; `name` empty = the one that decoder.yml names, or the only one. Throws DataError, naming file and
/// key, for what is damaged, and for what Lacuna has no model of.
IncomingModel read_marian(IncomingFiles& files, std::string name, const ImportRequest& request);

}  // namespace lacuna
