#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/content_hash.h"
#include "base/files.h"

/// Files and folders that are whole on disk or not there at all. Everything here throws MachineError naming the file and what the system
/// said.
namespace lacuna {

/// A FileWriter that hashes on the way.
class DurableFile {
 public:
  explicit DurableFile(const std::filesystem::path& file) : file_(file) {}

  void write(std::string_view bytes);
  /// Of what is on the disk now; nothing may be written after.
  FileDigest finish();

 private:
  FileWriter file_;
  uint64_t bytes_ = 0;
  ContentHash hash_;
};

FileDigest write_durably(const std::filesystem::path& file, std::string_view bytes);
/// sync_directory, which must not fail.
void sync_folder(const std::filesystem::path& folder);

/// Makes `link` point to `target` (relative to the link's folder), whatever it pointed to before, in one step.
void replace_link(const std::filesystem::path& link, const std::string& target);

/// A folder written under a temporary name beside its final one; `commit` puts it in place in one step, with everything synced. If it is
/// destroyed before that, nothing is left. In one parent folder, a process makes one at a time.
class FolderInTheMaking {
 public:
  explicit FolderInTheMaking(const std::filesystem::path& place);
  ~FolderInTheMaking();
  FolderInTheMaking(const FolderInTheMaking&) = delete;
  FolderInTheMaking& operator=(const FolderInTheMaking&) = delete;

  const std::filesystem::path& path() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path place_, temporary_;
  bool committed_ = false;
};

/// Removes a folder so that a crash never leaves half of it under its own name.
void remove_folder(const std::filesystem::path& folder);
/// Removes what crashed processes left half-written or half-removed in `parent`. Whether processes of other hosts and containers still live
/// cannot be known here: what is theirs goes when nobody has touched it for as long as `patience`.
void remove_leftovers(const std::filesystem::path& parent, std::chrono::seconds patience = std::chrono::hours(24));

}  // namespace lacuna
