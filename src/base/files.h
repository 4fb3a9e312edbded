#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/line_reader.h"  // text files are read by lines

namespace lacuna {

/// Throws DataError (MachineError where the machine is at fault) if `path` cannot be read as a file: missing, a folder, not readable,
/// empty. `what` says what it should be ("training corpus").
void require_readable_file(const std::filesystem::path& path, const std::string& what);
/// Throws DataError for a pipe or a device, whose bytes can be read only once.
void require_rereadable_file(const std::filesystem::path& path);
/// require_readable_file and require_rereadable_file: for a file that is read several times.
void require_corpus_file(const std::filesystem::path& path, const std::string& what);

/// A file read piece by piece. Throws if it cannot be read (see fail_by).
class FileReader {
 public:
  explicit FileReader(std::filesystem::path path);
  /// Opens a file of a folder that anybody may have made. Throws DataError, without waiting, for what is no regular file of that folder: a
  /// link, a pipe, a device.
  static FileReader in_untrusted_folder(std::filesystem::path path);
  ~FileReader();
  FileReader(FileReader&& other) noexcept;
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  /// The file's size now, in bytes; 0 for a pipe.
  uint64_t size() const;
  /// Reads up to `most` bytes and returns how many; 0 at the end.
  size_t read(char* bytes, size_t most) const;
  /// Returns all bytes of a regular file. Throws DataError if it has more than `most`, or becomes shorter meanwhile.
  std::string whole(uint64_t most) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  FileReader(std::filesystem::path path, int flags);
  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  int file_;
};

/// Returns all bytes of a file. Throws if it cannot be read (see fail_by).
std::string read_file(const std::filesystem::path& path);

/// Says whether to repeat a read or write that failed: true after a signal, and for a file in non-blocking mode (whoever started the
/// program may have left a pipe so) once poll reports `events` (POLLIN or POLLOUT). Leaves errno alone if the answer is no.
bool may_try_again(int file, short events);

/// A file being written, whole once `finish` has returned. Throws MachineError (disk full, no permission) with the system's reason.
class FileWriter {
 public:
  /// Creates or overwrites the file. A file that is to replace `former` must not exist; it takes the permissions of `former`, and errors
  /// name `former`.
  explicit FileWriter(const std::filesystem::path& path, const std::filesystem::path& former = {});
  /// Opens the file, which is made if it is not there, and leaves what it holds or overwrites it.
  enum class Begin { kEmpty, kAtEnd };
  FileWriter(const std::filesystem::path& path, Begin begin);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::string_view bytes);
  /// Hands all bytes to the system: whoever reads the file sees them.
  void flush();
  /// Syncs and closes the file: all bytes are on the disk (or with the reader of a pipe).
  void finish();

 private:
  void open(const std::filesystem::path& path, int how, mode_t mode);
  void put(std::string_view bytes);

  std::filesystem::path name_;  // in errors
  int file_ = -1;
  std::string buffer_;
};

/// Throws the MachineError (for a loop of links or too long a name, DataError) for a write to `path` that failed, by errno. `bytes` is how
/// many could not be written; 0 = those written could not be synced, or the file not be renamed.
[[noreturn]] void fail_to_write(const std::filesystem::path& path, size_t bytes);

/// False for an existing thing that is not a regular file, such as a pipe, and for an open file named by its number (/dev/stdout,
/// /dev/fd/3): these must be written to directly.
bool is_replaceable(const std::filesystem::path& path);

/// Resolves links at the end of `path`: returns the file they lead to, which need not exist.
std::filesystem::path behind_links(const std::filesystem::path& path);

/// Opens what is not replaceable for writing; an open file named by its number is continued where it stands. Returns -1 with errno if
/// that fails.
int open_to_write_to(const std::filesystem::path& path);

/// Returns the bytes that can still be written to the file system of `path`, which need not exist yet.
uint64_t free_disk_space(std::filesystem::path path);

/// Position of the first byte that is not UTF-8 (overlong forms, surrogates and values beyond U+10FFFF included); empty if all is UTF-8.
std::optional<size_t> first_invalid_utf8(std::string_view text);

/// Returns TMPDIR or /tmp. Throws MachineError if that is no folder.
std::filesystem::path folder_for_temporary_files();

/// A temporary file for other programs to read, which has no name (on a file system without such files it is in memory): the system removes
/// it however this process ends. Throws MachineError if it cannot be made.
class UnnamedFile {
 public:
  UnnamedFile();
  ~UnnamedFile();
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  /// Where this process, and those that it starts, open it for as long as this object lives.
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int file_;
};

}  // namespace lacuna
