#pragma once

#include <string>
#include <vector>

#include "base/precision.h"
#include "exchange/model_card.h"

/// Models in the formats of other programs.
namespace lacuna {

enum class ExchangeFormat {
  kHuggingFace,  ///< a folder of Hugging Face transformers: huggingface.h
  kCtranslate2,  ///< a folder of CTranslate2: ctranslate2.h
  kArgos,        ///< a package of Argos Translate and LibreTranslate, one file: argos.h
};

struct ExportRequest {
  std::string model;                        ///< checkpoint or run folder
  std::vector<std::string> overrides = {};  ///< keys of `translate` and `model.attention`, as on the command line
  ExchangeFormat format = ExchangeFormat::kHuggingFace;
  std::string output;                        ///< the folder or file to be made
  bool replaces = false;                     ///< an export that stands there is replaced
  Precision precision = Precision::kFp32;    ///< of the weights in the files: kFp32; for CTranslate2 and Argos kInt8, too
  std::string src_lang = {}, tgt_lang = {};  ///< language codes in place of the model's; empty = the model's
  ModelTerms terms = {};
};

/// Writes a model, as a whole or not at all. Throws UsageError for a place that is taken, CheckpointError naming the key for a model that
/// the format cannot hold, and MachineError if it cannot be written.
void export_model(const ExportRequest& request);

}  // namespace lacuna
