#pragma once

#include <string>
#include <vector>

namespace lacuna {

/// The pieces of a SentencePiece model by the model's own ids.
struct SpmIds {
  std::vector<std::string> pieces;
  int unk = 0, bos = -1, eos = -1, pad = -1;  ///< -1 = there is none
};

/// Reads them from a model's file. Throws DataError, naming `name`, if it is none.
SpmIds spm_ids(const std::string& model, const std::string& name);

}  // namespace lacuna
