#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/files.h"

namespace lacuna {

/// Packs text into a file as it comes, with neither name nor time: the same text makes the same file.
class PackedWriter {
 public:
  virtual ~PackedWriter() = default;
  virtual void write(std::string_view text) = 0;
  /// What is left to write, and the format's end; the file is not finished by it.
  virtual void finish() = 0;
};

/// By what the name ends in: .gz is gzip, .zst zstd; null for other names. `file` outlives it.
std::unique_ptr<PackedWriter> packed_writer(const std::filesystem::path& name, FileWriter& file);

}  // namespace lacuna
