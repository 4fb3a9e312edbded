#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

using NamedTensor = std::pair<std::string, Tensor>;

/// Reads a file, from its beginning, tensor by tensor, into memory, where what others write to it does not show. Nothing in the file is
/// trusted: throws CheckpointError naming the file and the fault.
class SafetensorsReader {
 public:
  /// Reads the header. The file must outlive the reader.
  explicit SafetensorsReader(const FileReader& file);
  /// Returns the types and shapes of all tensors, as tensors without memory (on LibTorch's device `meta`).
  NamedTensors shapes() const;
  /// Reads the next tensor of the file; returns nothing at its end.
  std::optional<NamedTensor> next();
  /// Returns the digest of the bytes that were read: of the whole file, at its end.
  FileDigest digest() const { return {size_, hash_.text()}; }

 private:
  struct Entry {
    std::string name;
    at::ScalarType dtype = at::kFloat;
    std::vector<int64_t> shape;
    uint64_t begin = 0, end = 0;
  };
  class Header;

  void take(char* bytes, uint64_t count);
  uint64_t header_length();

  const FileReader& file_;
  const uint64_t size_;
  ContentHash hash_;
  std::vector<Entry> entries_;  // in the order of the file
  size_t next_ = 0;             // of the entries
};

/// Reads all tensors of a file, as SafetensorsReader does.
NamedTensors read_safetensors(const FileReader& file);

}  // namespace lacuna
