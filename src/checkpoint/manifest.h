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
  /// Throws CheckpointError unless `file` is listed, exists, and has the listed size and hash.
  void check(const std::filesystem::path& folder, const std::string& file) const;
};

}  // namespace lacuna
