#include "text/spm_ids.h"

#include <sentencepiece_processor.h>

#include "text/spm_file.h"

namespace lacuna {

SpmIds spm_ids(const std::string& model, const std::string& name) {
  const SpmFile checked(model, name);
  sentencepiece::SentencePieceProcessor processor;
  load_spm(processor, model, name);
  SpmIds ids{{}, processor.unk_id(), processor.bos_id(), processor.eos_id(), processor.pad_id()};
  ids.pieces.reserve(static_cast<size_t>(processor.GetPieceSize()));
  for (int id = 0; id < processor.GetPieceSize(); ++id) ids.pieces.push_back(processor.IdToPiece(id));
  return ids;
}

}  // namespace lacuna
