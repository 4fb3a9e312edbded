#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace lacuna {

/// A lock between processes, on a file that stays. The system releases it however the process ends.
class FileLock {
 public:
  /// Creates the file if it is missing. A file that belongs to another user and is only readable can be locked too. Throws MachineError.
  explicit FileLock(std::filesystem::path file);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// Returns false if another process holds the lock; true on a file system without locks.
  bool try_take();
  /// Waits for the lock; false if that takes longer than `patience`. Throws Interrupted; `what` says what was being done.
  bool take_within(std::chrono::duration<double> patience, const std::string& what);
  /// True if this object holds the lock; always false on a file system without locks.
  bool is_held() const { return is_held_; }
  /// Returns false once the path leads to another file, or none: the file was removed or renamed, or its folder was.
  bool is_in_place() const;
  /// Writes who holds the lock into the file, for others to read, as far as it is writable. Throws MachineError.
  void write(const std::string& text) const;
  /// Returns what the file holds, by its path: what was written last, by whomever; empty if it cannot be read.
  std::string read() const;

 private:
  std::filesystem::path path_;
  int file_;
  bool is_held_ = false;
};

}  // namespace lacuna
