#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/durable_files.h"

namespace lacuna {

/// A checkpoint's manifest.json: the format version, the size and XXH3-128 of every other file, and finally the
/// XXH3-128 of the manifest itself, so that no bit of a checkpoint can change unnoticed.
struct Manifest {
  static constexpr int kFormatVersion = 1;  ///< written by this program, which reads all earlier versions too
  static constexpr const char* kFileName = "manifest.json";

  std::string program_version;
  std::map<std::string, FileDigest> files;

  bool lists(const std::string& file) const { return files.contains(file); }
  std::string to_json() const;

  /// Reads the manifest of `folder`. Throws CheckpointError if it is missing (the folder is no checkpoint), damaged, or
  /// of a newer format.
  static Manifest read(const std::filesystem::path& folder);
  /// Opens a file. Throws CheckpointError unless it is listed, is a regular file of the folder (no link), and has the
  /// listed size.
  FileReader open(const std::filesystem::path& folder, const std::string& file) const;
  /// Throws CheckpointError unless `actual`, of the bytes that were read, is what is listed.
  void require(const std::filesystem::path& folder, const std::string& file, const FileDigest& actual) const;
  /// Reads a file of at most `most` bytes, and checks what was read.
  std::string read_file(const std::filesystem::path& folder, const std::string& file, uint64_t most) const;
};

}  // namespace lacuna
