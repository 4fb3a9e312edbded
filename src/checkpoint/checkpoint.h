#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "config/options.h"
#include "model/transformer.h"
#include "text/vocabulary.h"

/// A checkpoint is a folder that explains itself:
///
///   model.safetensors     weights; names: src/model/README.md; of `lacuna quantize`: quantize.h
///   ema.safetensors       their moving average, if the run keeps one
///   config.yaml           the resolved configuration
///   spm.model             the vocabulary, or spm.src.model and spm.tgt.model; without SentencePiece vocab.txt, or vocab.src.txt and
///                         vocab.tgt.txt
///   checkpoint.json       step, scores, which weights translate, vocabulary sizes
///   trainer.safetensors   optimizer and trainer state, in the newest checkpoint of a run only; trainer.json belongs to it
///   manifest.json         format and program version, size and XXH3-128 of every other file
///
/// Written under a temporary name, synced, renamed: a crash at any instant leaves the previous one whole.
namespace lacuna {

/// What a checkpoint says of itself (checkpoint.json).
struct CheckpointInfo {
  int64_t step = 0;
  std::map<std::string, double> scores = {};  ///< of the validation at this step: "bleu", "chrf", "loss", ...
  bool uses_ema = false;                      ///< ema.safetensors is what validates, averages and translates
  bool is_scheduled = true;  ///< one of those that `keep_last` and averages count; not of an interruption or a validation alone
  std::vector<std::string> averaged_from = {};
  std::string quantized_to = {};  ///< "int8" or "bf16" of `lacuna quantize`; such a checkpoint translates, but neither trains nor averages
  std::string program_version = {};
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

  /// The weights that validate, average and translate.
  const NamedTensors& translating_weights() const { return info.uses_ema && ema_weights ? *ema_weights : weights; }

  /// What `config_yaml` says. Throws ConfigError, which names the file of the checkpoint at `path`.
  Options options(const std::string& path) const;
};

/// Writes the folder `path` as said above; an existing one is replaced. Throws MachineError (disk full, with the bytes needed; nothing
/// half-written is left).
void save_checkpoint(const std::string& path, const CheckpointContents& contents);

/// Reads a folder and checks it against its manifest. Throws CheckpointError naming folder, file, what is wrong and what to do.
CheckpointContents load_checkpoint(const std::string& path, bool with_trainer_state = false);

/// Whether it is one: it has a manifest. Of what that says, read_checkpoint_info complains.
bool is_checkpoint(const std::string& path);
/// What a checkpoint says of itself, without reading its weights. Throws as load_checkpoint does.
CheckpointInfo read_checkpoint_info(const std::string& path);
/// Bytes of the file with the weights that translate, and their XXH3-128.
uint64_t bytes_of_weights(const std::string& path);
std::string hash_of_weights(const std::string& path);
/// Whether it holds what a run needs to go on.
bool has_trainer_state(const std::string& path);
/// Turns it into a weights-only checkpoint; a crash at any instant leaves one or the other. Of one that is weights-only, removes what such
/// a crash has left of the state.
void drop_trainer_state(const std::string& path);

/// A translator ready to use: the model with the weights that translate, its vocabularies and its configuration.
struct LoadedModel {
  std::shared_ptr<Transformer> model;
  Vocabularies vocabularies;
  Options options;
  CheckpointInfo info;
};
/// Accepts a checkpoint folder or a run folder (then its `averaged`, else `best`, else `last`). The model is in evaluation mode on
/// `device`. `overrides`, as on the command line, may change options of `translate` and `model.attention`; what then attends in another way
/// than in training is logged. Throws CheckpointError if the checkpoint has not all parameters that the attention asked for needs.
LoadedModel load_model(const std::string& path, const std::string& device = "cpu", const std::vector<std::string>& overrides = {});

/// What a model must know of its vocabularies.
VocabularySizes sizes_of(const Vocabularies& vocabularies);

/// Copies weights into the model's parameters by name; throws CheckpointError listing missing, superfluous and misshapen names (the first
/// few of each).
void load_weights(Transformer& model, const NamedTensors& weights, const std::string& place);
/// The same without a copy: the parameters are the weights, which lie in the file's pages as long as nobody writes to them.
void take_weights(Transformer& model, const NamedTensors& weights, const std::string& place);
/// The parameters by name: detached, sharing the model's memory.
NamedTensors weights_of(const Transformer& model);

}  // namespace lacuna
