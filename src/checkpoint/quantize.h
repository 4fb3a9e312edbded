#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "kernels/packed_product.h"

/// Checkpoints whose weights are rounded (`lacuna quantize`). In model.safetensors, of every linear layer and every table of embeddings:
///
///   int8   NAME.weight        I8 [outputs, inputs] or [V, D], from -127 to 127
///          NAME.weight_scale  F32 [outputs] or [V]: a weight is its byte times the scale of its row
///   bf16   NAME.weight        BF16
///
/// Biases, norms, learned positions and what attention has of its own stay F32. `translate.precision` of config.yaml is the same format, so
/// such a model translates as the one it was made of does with that precision, bit for bit; checkpoint.json says "quantised_to".
namespace lacuna {

/// The checkpoint at `path` with the weights that translate, rounded to kInt8 or kBf16. Throws CheckpointError if they are rounded already
/// or hold what is no number.
CheckpointContents quantized_checkpoint(const std::string& path, WeightFormat format);

/// The tensors of a file with floats in place of bytes and scales. Throws CheckpointError naming the file and the tensor for scales that
/// are missing, of another shape or no scales.
NamedTensors with_floats(NamedTensors tensors, const std::string& file);

/// Throws CheckpointError if the checkpoint is a rounded one; `purpose` is what it was wanted for ("average").
void require_unrounded(const std::string& path, const CheckpointInfo& info, const std::string& purpose);

}  // namespace lacuna
