#pragma once

#include "exchange/import.h"
#include "exchange/incoming_files.h"
#include "exchange/incoming_model.h"

/// Folders of Hugging Face transformers: MarianMTModel (Opus-MT), PegasusForConditionalGeneration as `lacuna export` writes it, and
/// M2M100ForConditionalGeneration (M2M100, NLLB-200, SMaLL-100).
namespace lacuna {

/// Throws DataError, naming file and key, for what is damaged, and for what Lacuna has no model of.
IncomingModel read_huggingface(IncomingFiles& files, const ImportRequest& request);

}  // namespace lacuna
