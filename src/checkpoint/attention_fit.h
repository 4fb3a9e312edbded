#pragma once

#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "config/options.h"
#include "model/transformer.h"

/// A checkpoint whose weights go into a model that attends in another way.

namespace lacuna {

struct AttentionFit {
  NamedTensors weights;               ///< what the model takes of the checkpoint
  std::vector<std::string> missing;   ///< parameters of its attention that the checkpoint has not
  std::vector<std::string> left_out;  ///< of the checkpoint's attention, what it has no place for
};
AttentionFit fit_attention(const Transformer& model, const NamedTensors& weights);

/// "attention of the checkpoint: cross: softmax; used here: cross: {type: topk, k: 8}"; empty where it is the same. Of models with as many
/// layers.
std::string change_of_attention(const ModelOptions& trained, const ModelOptions& used);

/// Throws CheckpointError if what the attention of a checkpoint at `place` has learned would mean something else where it is used.
void require_same_units(const ModelOptions& trained, const ModelOptions& used, const std::string& place);

}  // namespace lacuna
