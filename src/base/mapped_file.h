#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>

namespace lacuna {

/// A file's bytes, for as long as this lives. A file of up to `most_read` bytes is read: what others do to it does not show. A larger one
/// is mapped, and what is written to it meanwhile shows.
class MappedFile {
 public:
  static constexpr uint64_t kMostRead = uint64_t{16} << 20;

  /// Throws DataError if the file cannot be read, MachineError if it cannot be mapped.
  explicit MappedFile(std::filesystem::path path, uint64_t most_read = kMostRead);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const char* data() const { return data_; }
  size_t size() const { return size_; }
  /// Throws MachineError if a mapped file was written to or cut short since it was mapped: called after a read, it tells that what was read
  /// is what was mapped.
  void require_unchanged() const;
  /// Throws that error, for what a whole file would not say.
  [[noreturn]] void fail_as_changed() const;

 private:
  void map();

  std::filesystem::path path_;
  std::string read_;
  const char* data_ = nullptr;
  size_t size_ = 0;
  int file_ = -1;  // of a mapped file
  timespec written_ = {};
};

/// Makes the program end with exit code 1 and a message that names the file, rather than by SIGBUS, where a mapped file is cut short while
/// it is in use.
void report_cut_files();

}  // namespace lacuna
