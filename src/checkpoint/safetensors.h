#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

#include "checkpoint/durable_files.h"

/// The safetensors format (https://huggingface.co/docs/safetensors): 8 bytes, little-endian, that give the header's length; the header, a
/// JSON object {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...} with offsets counted from its end; then the
/// tensors' bytes, little-endian, row-major, without gaps.
namespace lacuna {

using at::Tensor;
using NamedTensors = std::map<std::string, Tensor>;

/// Writes the tensors (of any device and strides; F64, F32, F16, BF16, I64, I32, I8, U8) and syncs the file. Tensors of wide types come
/// first, so that each lies aligned.
FileDigest write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors);

/// Reads a file without copying: the tensors are views of its memory map (kernels/mapped_tensor.h), private to this process (writing to one
/// does not change the file). Nothing in the file is trusted: CheckpointError names the file and what is wrong.
NamedTensors read_safetensors(const std::filesystem::path& file);

}  // namespace lacuna
