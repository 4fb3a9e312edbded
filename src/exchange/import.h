#pragma once

#include <string>

/// Models of other programs.
namespace lacuna {

/// How the frequencies of sinusoidal positions of a MarianMTModel are spaced.
enum class PositionsAs {
  kTransformers,  ///< as transformers computes them
  kMarian,        ///< as Marian has trained them
};

struct ImportRequest {
  std::string place;   ///< a folder of Hugging Face transformers or Marian, or Marian's .npz file
  std::string output;  ///< the checkpoint to be made
  PositionsAs positions = PositionsAs::kTransformers;
  std::string src_tag = {}, tgt_tag = {};    ///< tokens that sources and translations begin with; empty = none but those of a line
  std::string src_lang = {}, tgt_lang = {};  ///< language codes in place of the model's; empty = the model's
  std::string license = {};                  ///< in place of what the folder says; empty = that
};

/// Writes a checkpoint, as a whole or not at all. Throws DataError, naming file and key, for what is damaged or of a kind that Lacuna has
/// no model of, UsageError for flags that do not fit, and MachineError if it cannot be written.
void import_model(const ImportRequest& request);

}  // namespace lacuna
