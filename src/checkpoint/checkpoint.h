#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "model/transformer.h"
#include "text/vocabulary.h"

/// A checkpoint is a folder that explains itself:
///   model.safetensors   weights (names: src/model/README.md)       ema.safetensors   their moving average, if the run keeps one
///   config.yaml         the resolved configuration                  spm.model, or spm.src.model and spm.tgt.model, or vocab.txt /
///   vocab.src.txt / vocab.tgt.txt checkpoint.json     format version, program version, step, scores, which weights translate, vocabulary
///   sizes trainer.safetensors, trainer.json   optimizer and trainer state: only in the newest checkpoints of a run manifest.json XXH3-128
///   of every other file
/// Written under a temporary name, synced, renamed: a crash at any instant leaves the previous one whole.
namespace lacuna {

using NamedTensors = std::map<std::string, Tensor>;

/// What a checkpoint says of itself (checkpoint.json).
struct CheckpointInfo {
  int64_t step = 0;
  std::map<std::string, double> scores;  ///< of the validation at this step: "bleu", "chrf", "loss", ...
  bool uses_ema = false;                 ///< ema.safetensors is what validates, averages and translates
  std::vector<std::string> averaged_from;
  std::string program_version;
};

/// Everything `save_checkpoint` writes. `trainer_tensors` and `trainer_json` are left out of weights-only checkpoints.
struct CheckpointContents {
  NamedTensors weights;
  std::optional<NamedTensors> ema_weights;
  std::string config_yaml;
  Vocabularies vocabularies;
  CheckpointInfo info;
  std::optional<NamedTensors> trainer_tensors;
  std::string trainer_json;
};

/// Writes the folder `path` as said above; an existing one is replaced. Throws MachineError (disk full, with the bytes needed; nothing
/// half-written is left).
void save_checkpoint(const std::string& path, const CheckpointContents& contents);

/// Reads a folder and checks it against its manifest. Throws CheckpointError naming folder, file, what is wrong and what to do.
CheckpointContents load_checkpoint(const std::string& path, bool with_trainer_state = false);

/// A translator ready to use: the model with the weights that translate, its vocabularies and its configuration.
struct LoadedModel {
  std::shared_ptr<Transformer> model;
  Vocabularies vocabularies;
  Options options;
  CheckpointInfo info;
};
/// Accepts a checkpoint folder or a run folder (then its `averaged`, else `best`, else `last`). The model is in evaluation mode on
/// `device`.
LoadedModel load_model(const std::string& path, const std::string& device = "cpu");

/// Copies weights into the model's parameters by name; throws CheckpointError listing missing, superfluous and misshapen names (the first
/// few of each).
void load_weights(Transformer& model, const NamedTensors& weights, const std::string& place);
NamedTensors weights_of(const Transformer& model);

}  // namespace lacuna
