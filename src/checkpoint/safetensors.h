#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/durable_files.h"

/// The safetensors format (https://huggingface.co/docs/safetensors): 8 bytes, little-endian, that give the header's
/// length; the header, a JSON object {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
/// with offsets counted from its end; then the tensors' bytes, little-endian, row-major, without gaps.
namespace lacuna {

using at::Tensor;
using NamedTensors = std::map<std::string, Tensor>;

/// Writes tensors (on any device, with any strides; F64, F32, F16, BF16, I64, I32, I8 or U8) and syncs the file.
/// Tensors of wide types come first, so that every tensor is aligned.
FileDigest write_safetensors(const std::filesystem::path& file, const NamedTensors& tensors);
/// Passes the bytes of such a file to `write`, piece by piece.
void write_safetensors(const std::function<void(std::string_view)>& write, const NamedTensors& tensors);

/// Reads a file, from its beginning, into memory, where what others write to it does not show; `digest` is that of the bytes that were
/// read. Nothing in the file is trusted: throws CheckpointError naming the file and the fault.
NamedTensors read_safetensors(const FileReader& file, FileDigest* digest = nullptr);

}  // namespace lacuna
