#pragma once

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "../base/scratch_folder.h"
#include "base/durable_files.h"
#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/manifest.h"
#include "config/load.h"

namespace lacuna {

/// Replaces a file of a checkpoint, and its entry in the manifest.
inline void replace_listed(const std::filesystem::path& folder, const std::string& name, const std::string& bytes) {
  Manifest manifest = Manifest::read(folder);
  manifest.files[name] = write_durably(folder / name, bytes);
  write_bytes(folder / Manifest::kFileName, manifest.to_json());
}

template <class Action>
std::string checkpoint_error_of(Action&& action) {
  return message_of<CheckpointError>(action);
}

inline Options small_options() {
  Options options;
  options.model.d_model = 8;
  options.model.num_heads = 2;
  options.model.d_ff = 16;
  options.model.encoder_layers = options.model.decoder_layers = 1;
  return options;
}

/// A checkpoint of a small model with weights that depend on `seed`, trainer state included.
inline CheckpointContents small_checkpoint(uint64_t seed = 1, const Options& options = small_options()) {
  CheckpointContents contents;
  contents.vocabularies.src = contents.vocabularies.tgt = token_list_from_bytes("<unk>\n<s>\n</s>\na\nb\nc\n", "test");
  const Transformer model(options.model, sizes_of(contents.vocabularies), seed);
  for (const auto& [name, tensor] : weights_of(model)) contents.weights[name] = tensor.clone();
  contents.config_yaml = to_yaml(options);
  contents.info.step = static_cast<int64_t>(seed);
  contents.trainer_tensors = NamedTensors{{"adam.first_moment.x", at::full({3}, static_cast<double>(seed), at::kDouble)}};
  contents.trainer_json = "{\"step\": " + std::to_string(seed) + "}\n";
  return contents;
}

}  // namespace lacuna
