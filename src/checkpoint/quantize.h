#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "kernels/packed_product.h"

/// Quantized checkpoints (`lacuna quantize`). In model.safetensors, every linear layer and every embedding table is
/// stored as
///
///   int8   NAME.weight        I8 [outputs, inputs] or [V, D], from -127 to 127
///          NAME.weight_scale  F32 [outputs] or [V]: a weight is its byte times the scale of its row
///   bf16   NAME.weight        BF16
///
/// Biases, norms, learned positions and attention's own parameters stay F32. `translate.precision` in config.yaml is
/// set to the same format, so that the model translates bit for bit as the original does with that precision.
/// checkpoint.json has "quantized_to" (version 0.1 wrote "quantised_to").
namespace lacuna {

/// Returns the checkpoint at `path` with the weights that translate quantized to kInt8 or kBf16. Throws CheckpointError
/// if they are quantized already, or not finite.
CheckpointContents quantized_checkpoint(const std::string& path, Precision format);

/// Replaces bytes and their scales by floats. Throws CheckpointError naming the file and the tensor if scales are
/// missing, negative, not finite, or of a wrong shape.
NamedTensors with_floats(NamedTensors tensors, const std::string& file);

/// Throws CheckpointError if the checkpoint is quantized; `purpose` is the verb of the message ("average").
void require_unrounded(const std::string& path, const CheckpointInfo& info, const std::string& purpose);

}  // namespace lacuna
