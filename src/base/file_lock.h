#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace lacuna {

/// A lock between processes, on an empty file that stays. The system lets go of it however the process ends.
class FileLock {
 public:
  /// Makes the file if it is not there. Users may share a folder: who may not write to the file of another one can lock it all the same.
  /// Throws MachineError.
  explicit FileLock(std::filesystem::path file);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// False if another process holds it. A file system without locks lets everyone pass.
  bool try_take();
  /// Waits for another process that holds it; false if that takes longer than `patience`. Throws Interrupted, with `what` is being done.
  bool take_within(std::chrono::duration<double> patience, const std::string& what);
  /// False on a file system without locks.
  bool is_held() const { return is_held_; }

 private:
  std::filesystem::path path_;
  int file_;
  bool is_held_ = false;
};

}  // namespace lacuna
