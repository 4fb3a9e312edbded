#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "checkpoint/durable_files.h"

namespace lacuna {

/// manifest.json of a checkpoint: the format it is in, size and XXH3-128 of every other file, and last the XXH3-128 of all that, so that
/// no bit of a checkpoint can change unnoticed.
struct Manifest {
  static constexpr int kFormatVersion = 1;  ///< this program writes it, and reads it and all before
  static constexpr const char* kFileName = "manifest.json";

  std::string program_version;
  std::map<std::string, FileDigest> files;

  bool lists(const std::string& file) const { return files.contains(file); }
  std::string to_json() const;

  /// Reads the manifest of `folder`. Throws CheckpointError if there is none (then it is no checkpoint), if it is damaged, or if the format
  /// is newer than this program.
  static Manifest read(const std::filesystem::path& folder);
  /// Throws CheckpointError unless `file` is listed, is there, and holds the bytes it should.
  void check(const std::filesystem::path& folder, const std::string& file) const;
};

}  // namespace lacuna
