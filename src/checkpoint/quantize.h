#pragma once

#include <optional>
#include <string>
#include <utility>

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

/// Turns the tensors of a file, which come one after the other, into floats: bytes wait for the scales of their rows, and scales for their
/// bytes. Throws CheckpointError naming the file and the tensor if scales are missing, negative, not finite, or of a wrong shape.
class FloatsOfFile {
 public:
  /// `shapes`: those of all tensors of the file.
  FloatsOfFile(NamedTensors shapes, std::string file) : shapes_(std::move(shapes)), file_(std::move(file)) {}
  /// Returns what the file holds, scales aside.
  NamedTensors shapes() const;
  /// Takes the next tensor, and returns the one that is whole now, if any is.
  std::optional<NamedTensor> add(NamedTensor tensor);
  /// To be called after the last tensor: throws for bytes that still wait.
  void end() const;

 private:
  /// Returns the name of the bytes that a tensor is part of; empty if of none.
  std::string bytes_of(const std::string& name) const;

  const NamedTensors shapes_;
  const std::string file_;
  NamedTensors waiting_;
};

/// Throws CheckpointError if the checkpoint is quantized; `purpose` is the verb of the message ("average").
void require_unrounded(const std::string& path, const CheckpointInfo& info, const std::string& purpose);

}  // namespace lacuna
