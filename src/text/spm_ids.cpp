#include "text/spm_ids.h"

#include <sentencepiece_processor.h>

#include "base/error.h"
#include "text/spm_file.h"

namespace lacuna {

SpmIds spm_ids(const std::string& model, const std::string& name) {
  const SpmFile checked(model, name);
  sentencepiece::SentencePieceProcessor processor;
  if (!processor.LoadFromSerializedProto(model).ok()) throw DataError(name + ": is not a SentencePiece model; expected a .spm file");
  SpmIds ids{{}, processor.unk_id(), processor.bos_id(), processor.eos_id(), processor.pad_id()};
  ids.pieces.reserve(static_cast<size_t>(processor.GetPieceSize()));
  for (int id = 0; id < processor.GetPieceSize(); ++id) ids.pieces.push_back(processor.IdToPiece(id));
  return ids;
}

}  // namespace lacuna
