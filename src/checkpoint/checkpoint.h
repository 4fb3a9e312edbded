#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
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
///   model.safetensors     weights; names: src/model/README.md; quantized ones: quantize.h
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

/// Where a model that was not trained here comes from.
struct ModelOrigin {
  std::string place, kind;                         ///< folder or file, and what it was; empty = trained here
  std::string license = {};                        ///< an identifier; empty = not said
  std::map<std::string, std::string> sha256 = {};  ///< of the files that were read, by their names
};

/// The contents of checkpoint.json.
struct CheckpointInfo {
  int64_t step = 0;
  std::map<std::string, double> scores = {};  ///< by name ("bleu", "chrf", "loss", ...), from the validation at this step
  bool uses_ema = false;                      ///< validation, averaging and translating use ema.safetensors
  bool is_scheduled = true;  ///< counted by `keep_last` and averages; false if saved only for an interruption or a validation
  std::vector<std::string> averaged_from = {};
  std::string quantized_to =
      {};                   ///< "int8" or "bf16" after `lacuna quantize`: such a checkpoint can translate, but not train or be averaged
  ModelOrigin origin = {};  ///< of an imported model, and of what is made of it without training
  std::string program_version = {};
};

/// Everything that `save_checkpoint` writes. Weights-only checkpoints have no `trainer_tensors` and no `trainer_json`.
struct CheckpointContents {
  NamedTensors weights;
  std::optional<NamedTensors> ema_weights;
  std::string config_yaml;
  Vocabularies vocabularies;
  CheckpointInfo info;
  std::optional<NamedTensors> trainer_tensors;
  std::string trainer_json;

  /// Returns the weights that validation, averaging and translating use.
  const NamedTensors& translating_weights() const { return info.uses_ema && ema_weights ? *ema_weights : weights; }

  /// Parses `config_yaml`. Throws ConfigError naming the configuration file of the checkpoint at `path`.
  Options options(const std::string& path) const;
};

/// Writes a checkpoint folder, atomically replacing an existing one, into a folder that is there. Throws MachineError, with
/// the bytes needed if the disk is full; nothing half-written is left. `before_commit` is called once all is written and does not stand
/// there yet: what it throws keeps the folder as it was.
void save_checkpoint(const std::string& path, const CheckpointContents& contents, const std::function<void()>& before_commit = {});

/// Returns once no thread of this process is in save_checkpoint(), at the latest after `limit`.
void wait_for_saving(std::chrono::milliseconds limit);

/// Reads a checkpoint folder and checks it against its manifest. Throws CheckpointError naming folder, file, fault and
/// remedy.
CheckpointContents load_checkpoint(const std::string& path, bool with_trainer_state = false);
/// As load_checkpoint, of weights only those that translate.
CheckpointContents load_checkpoint_to_translate(const std::string& path);

/// Receives weights that are read one after the other.
using WeightTaker = std::function<void(const std::string& name, Tensor weight)>;
/// Gets what a checkpoint holds beside the weights, and their shapes (tensors without memory); returns who takes them.
using WeightsBegin = std::function<WeightTaker(const CheckpointContents& others, const NamedTensors& shapes)>;
/// Reads what load_checkpoint_to_translate() reads, but passes each weight on as soon as it is read: there need not be room for all of
/// them. Throws as that does, at the end at the latest; nothing of the weights may be used then.
void pass_weights_to_translate(const std::string& path, const WeightsBegin& begin);

/// Returns true if the folder has a manifest. Does not read it: read_checkpoint_info throws for a damaged one.
bool is_checkpoint(const std::string& path);
/// Reads a checkpoint's checkpoint.json, not its weights. Throws as load_checkpoint does.
CheckpointInfo read_checkpoint_info(const std::string& path);
/// Reads a checkpoint's configuration. Throws as load_checkpoint does.
std::string read_checkpoint_config(const std::string& path);
/// Returns the size in bytes of the file with the weights that translate.
uint64_t bytes_of_weights(const std::string& path);
/// Returns the XXH3-128 of the file with the weights that translate.
std::string hash_of_weights(const std::string& path);
/// Returns a hash of all that a checkpoint translates with: weights, vocabularies, configuration.
std::string hash_of_translating_files(const std::string& path);
/// Returns true if the checkpoint holds the trainer state, which a run needs to resume.
bool has_trainer_state(const std::string& path);
/// Makes the checkpoint weights-only; a crash at any instant leaves it with all of the trainer state or with none that
/// is listed. For a weights-only checkpoint, removes files that such a crash has left.
void drop_trainer_state(const std::string& path);

/// A model with the weights that translate, its vocabularies and its configuration.
struct LoadedModel {
  std::shared_ptr<Transformer> model;
  Vocabularies vocabularies;
  Options options;
  CheckpointInfo info;
  std::string hash;  ///< hash_of_translating_files()
};
/// Loads a checkpoint folder or a run folder (its `averaged`, else `best`, else `last`); the model is in evaluation
/// mode on `device`. `overrides`, as on the command line, may change options of `translate` and `model.attention`; an
/// attention that differs from training's is logged. Throws CheckpointError if the checkpoint lacks a parameter that
/// the requested attention needs.
LoadedModel load_model(const std::string& path, const std::string& device = "cpu", const std::vector<std::string>& overrides = {});
/// Does that for a model that only translates: each weight is rounded and packed for products as soon as it is read, and then goes
/// (Transformer::keep_rounded). `precision`: none = what the options' translate.precision means on the device.
LoadedModel load_model_to_translate(const std::string& path, const std::string& device, const std::vector<std::string>& overrides,
                                    std::optional<Precision> precision = {});

/// The options that load_model() would give, without the weights: what is wrong with the last of several models is known before work on
/// the first begins. Throws as load_model() does, but for what only the weights can tell.
Options options_of_checkpoint(const std::string& path, const std::vector<std::string>& overrides);
/// Throws CheckpointError where a model of these sizes is many times as large as the weights of the checkpoint in `folder`: it would take
/// memory before the two are compared.
void require_room_for(const ModelOptions& model, const VocabularySizes& sizes, const NamedTensors& weights, const std::string& folder);

/// Holds the search that the checkpoint at `path` asks for against what a stranger's may, where `overrides` of the command line do not name
/// it: throws CheckpointError for one beyond all use, such as a beam of 10,000; a shortlist must be a file of the checkpoint's folder,
/// which it then names, or is left out with a warning.
void restrict_search(TranslateOptions& options, const std::string& path, const std::vector<std::string>& overrides);

/// Returns the sizes of both vocabularies, which a model is built with.
VocabularySizes sizes_of(const Vocabularies& vocabularies);

/// Throws CheckpointError listing the first missing, superfluous and misshapen names unless these are the weights of the model; their
/// shapes will do.
void require_weights_of(const Transformer& model, const NamedTensors& weights, const std::string& place);
/// Copies weights into the model's parameters by name. Throws as require_weights_of.
void load_weights(Transformer& model, const NamedTensors& weights, const std::string& place);
/// Returns the parameters by name: detached, sharing the model's memory.
NamedTensors weights_of(const Transformer& model);

/// The weights of a checkpoint, matched to a model that may have other attention types than the checkpoint's.
struct AttentionFit {
  NamedTensors weights;               ///< weights of the checkpoint that the model has a place for
  std::vector<std::string> missing;   ///< attention parameters of the model that the checkpoint lacks
  std::vector<std::string> left_out;  ///< attention weights of the checkpoint that the model lacks
};
/// Matches a checkpoint's weights to the model's attention parameters; other weights are passed through unchecked.
AttentionFit fit_attention(const Transformer& model, const NamedTensors& weights);

/// Returns a text such as "attention of the checkpoint: cross: softmax; used here: cross: {type: topk, k: 8}", or an
/// empty one if both models attend alike. Both must have the same number of layers.
std::string change_of_attention(const ModelOptions& trained, const ModelOptions& used);

/// Throws CheckpointError, naming `place`, if the numbers that a checkpoint's attention has learned are in other units
/// than those of the attention that is to use them.
void require_same_units(const ModelOptions& trained, const ModelOptions& used, const std::string& place);

}  // namespace lacuna
