#pragma once

#include <memory>
#include <string_view>

#include "base/files.h"

namespace lacuna {

/// Writes text to a file in gzip's format, with neither name nor time: the same text makes the same file.
class GzipWriter {
 public:
  /// `file` outlives it.
  explicit GzipWriter(FileWriter& file);
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  void write(std::string_view text);
  /// What is left to write, and the format's end; `file` is not finished by it.
  void finish();

 private:
  struct Deflater;
  std::unique_ptr<Deflater> deflater_;
  FileWriter& file_;
};

}  // namespace lacuna
