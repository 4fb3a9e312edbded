#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"

namespace lacuna {

/// Bytes that a SentencePiece model, and a list of pieces, may have.
inline constexpr uint64_t kMostSpm = 64 << 20, kMostList = 16 << 20;

/// The files of a folder that a model comes from. Nothing in them is trusted: functions throw DataError with the file's name for what is
/// missing, no file, or larger than it can be. Links are followed, of which the Hugging Face Hub's cache consists.
class IncomingFiles {
 public:
  explicit IncomingFiles(std::filesystem::path folder);

  std::string folder() const { return folder_.string(); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  bool has(const std::string& name) const;
  /// Returns the names of the folder's files, sorted.
  std::vector<std::string> names() const;

  /// Returns the bytes of a file.
  std::string text(const std::string& name, uint64_t most);
  /// Returns what a JSON file holds, an object.
  nlohmann::json json(const std::string& name, uint64_t most);
  /// Returns the tensors of a safetensors file.
  NamedTensors tensors(const std::string& name);

  /// The SHA-256, in hexadecimal digits, of each file that was read.
  const std::map<std::string, std::string>& sha256() const { return sha256_; }

 private:
  void require_file(const std::string& name) const;

  std::filesystem::path folder_;
  std::map<std::string, std::string> sha256_;
};

/// True for a name that stands in no folder.
bool is_name_of_file(const std::string& name);

}  // namespace lacuna
