#include "checkpoint/manifest.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/json_text.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMostBytes = 1 << 20;  // of a manifest
constexpr char kWhatToDo[] = ". Use another checkpoint, or copy this one again";

[[noreturn]] void fail_damaged(const fs::path& file, const std::string& what) {
  throw DamagedCheckpointError(file.string() + " is damaged: " + what + kWhatToDo);
}

/// Returns what `read` gives; a file that cannot be read as a file of its own is damage of the checkpoint.
template <class Read>
auto as_checkpoint_error(const Read& read) {
  try {
    return read();
  } catch (const DataError& error) {
    throw DamagedCheckpointError(std::string(error.what()) + kWhatToDo);
  }
}

/// Returns true if the name, which was read from a file, cannot lead out of the checkpoint's folder.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name != "." && name != "..";
}

Manifest parse(const fs::path& file, const json& value) {
  Manifest manifest;
  try {
    const int64_t version = natural_number(value.at("format_version"));
    manifest.program_version = value.at("program_version").get<std::string>();
    if (version > Manifest::kFormatVersion) {
      throw CheckpointError(file.parent_path().string() + " is a checkpoint of format version " + std::to_string(version) +
                            ", written by lacuna " + manifest.program_version + "; this program reads versions up to " +
                            std::to_string(Manifest::kFormatVersion) + ". Use a newer lacuna");
    }
    if (version < 1) fail_damaged(file, "format_version is " + std::to_string(version));
    for (const auto& [name, entry] : value.at("files").items()) {
      if (!is_plain_name(name)) fail_damaged(file, "it lists \"" + name + "\", which is no file name");
      manifest.files[name] = {static_cast<uint64_t>(natural_number(entry.at("bytes"))), entry.at("xxh3_128").get<std::string>()};
    }
  } catch (const json::exception& error) {
    fail_damaged(file, error.what());
  }
  return manifest;
}

}  // namespace

std::string Manifest::to_json() const {
  nlohmann::ordered_json value = {{"format_version", kFormatVersion}, {"program_version", program_version}};
  value["files"] = nlohmann::ordered_json::object();
  for (const auto& [name, digest] : files) value["files"][name] = {{"bytes", digest.bytes}, {"xxh3_128", digest.xxh3_128}};
  value["xxh3_128"] = hash_of(value.dump());
  return value.dump(2) + "\n";
}

Manifest Manifest::read(const fs::path& folder) {
  if (!fs::exists(folder)) throw CheckpointError(folder.string() + " does not exist; expected the folder of a checkpoint");
  if (!fs::is_directory(folder)) throw CheckpointError(folder.string() + " is a file; expected the folder of a checkpoint");
  const fs::path file = folder / kFileName;
  if (!fs::exists(file)) {
    throw CheckpointError(folder.string() + " is not a checkpoint: it has no " + kFileName +
                          ". Expected a folder such as RUN/step_1000, RUN/best or RUN/averaged");
  }
  const std::string text = as_checkpoint_error([&] { return FileReader::in_untrusted_folder(file).whole(kMostBytes); });
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) fail_damaged(file, "it is not JSON");
  Manifest manifest = parse(file, value);
  if (manifest.to_json() != text) fail_damaged(file, "it is not what was written");
  return manifest;
}

FileReader Manifest::open(const fs::path& folder, const std::string& file) const {
  const fs::path path = folder / file;
  const auto found = files.find(file);
  if (found == files.end()) fail_damaged(folder / kFileName, "it does not list " + file);
  if (!fs::exists(path)) throw DamagedCheckpointError(path.string() + " is missing" + kWhatToDo);
  FileReader reader = as_checkpoint_error([&] { return FileReader::in_untrusted_folder(path); });
  const uint64_t expected = found->second.bytes, bytes = reader.size();
  if (bytes != expected) {
    fail_damaged(path, "it has " + std::to_string(bytes) + " bytes, the manifest says " + std::to_string(expected) +
                           (bytes < expected ? ": it is cut short" : ""));
  }
  return reader;
}

void Manifest::require(const fs::path& folder, const std::string& file, const FileDigest& actual) const {
  const FileDigest& expected = files.at(file);
  if (actual == expected) return;
  fail_damaged(folder / file, "its XXH3-128 is " + actual.xxh3_128 + ", the manifest says " + expected.xxh3_128);
}

std::string Manifest::read_file(const fs::path& folder, const std::string& file, uint64_t most) const {
  const FileReader reader = open(folder, file);
  std::string bytes = as_checkpoint_error([&] { return reader.whole(most); });
  require(folder, file, {bytes.size(), hash_of(bytes)});
  return bytes;
}

}  // namespace lacuna
