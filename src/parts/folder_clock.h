#pragma once

#include <filesystem>

namespace lacuna {

/// The time by which a folder's file system dates its files: one for all machines that share the folder, whatever their own clocks say.
class FolderClock {
 public:
  /// Makes a file in the folder, which has no name a moment later. Throws MachineError if that fails.
  explicit FolderClock(const std::filesystem::path& folder);
  ~FolderClock();
  FolderClock(const FolderClock&) = delete;
  FolderClock& operator=(const FolderClock&) = delete;

  /// True for the file of a process that ended in that moment.
  static bool is_left(const std::filesystem::path& file);
  /// Returns the seconds since 1970. Throws MachineError if the file system does not answer.
  double now() const;

 private:
  std::filesystem::path folder_;
  int file_;
};

}  // namespace lacuna
