#pragma once

#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "config/options.h"
#include "model/transformer.h"

namespace lacuna {

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
