#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/line_reader.h"  // text files are read by lines

namespace lacuna {

/// Throws DataError if `path` cannot be read as a file: missing, a folder, not readable, empty. `what` says what it should be ("training
/// corpus").
void require_readable_file(const std::filesystem::path& path, const std::string& what);

/// The bytes of a file, read by read: not mapped, as one that becomes shorter meanwhile would end the program by a signal. Throws DataError
/// if it cannot be read.
class FileReader {
 public:
  explicit FileReader(std::filesystem::path path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  /// What the file has, as it says now; 0 of a pipe.
  uint64_t size() const;
  /// Of the bytes that come next, at most `most`: how many; 0 at the end.
  size_t read(char* bytes, size_t most) const;

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  int file_;
};

/// All bytes of a file. Throws DataError if it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// After a read or write that failed: true if it is to be tried again, as a signal came between, or as the file is set not to block (those
/// who start the program may have left a pipe so) and was not ready: then once it is. `events` are POLLIN or POLLOUT; errno stays where the
/// answer is no.
bool may_try_again(int file, short events);

/// A file being written, whole once `finish` has come back. Throws MachineError (disk full, no permission) with what the system said.
class FileWriter {
 public:
  /// Makes the file, or writes over it. One that is to take the place of `former` must be new, gets its permissions if it is there, and has
  /// its name in errors.
  explicit FileWriter(const std::filesystem::path& path, const std::filesystem::path& former = {});
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::string_view bytes);
  /// The last bytes are on the disk (or with who reads a pipe), and the file is closed.
  void finish();

 private:
  void put(std::string_view bytes);

  std::filesystem::path name_;  // in errors
  int file_ = -1;
  std::string buffer_;
};

/// Throws DataError for a pipe or a device, which gives its bytes only once.
void require_rereadable_file(const std::filesystem::path& path);
/// Both, for a file that is read several times.
void require_corpus_file(const std::filesystem::path& path, const std::string& what);

/// False for what is there and is no file of its own, such as a pipe, and for an open file by its number (/dev/stdout, /dev/fd/3), whatever
/// it is: these are written to, and nothing takes their place.
bool is_replaceable(const std::filesystem::path& path);

/// The file that a link leads to, which need not be there, so that the link stays.
std::filesystem::path behind_links(const std::filesystem::path& path);

/// Opens what is not replaceable. Open files by their number go on where they are. -1 if that is not possible; errno says why.
int open_to_write_to(const std::filesystem::path& path);

/// A file that takes its place when it is whole: the old one or the new one is there at any instant, never half of one. Until then it
/// stands beside it, under a name of its own, whoever else writes the same file; such files of processes that are no more (see maker.h)
/// are removed. Without `finish` the old one stays, and nothing else. A file that is mounted by itself, as containers may have it, cannot
/// be replaced, and is written over once the new one is whole, which stays where that fails, as the error says. Throws MachineError (disk
/// full, no permission).
class FileReplacement {
 public:
  /// Of what is replaceable. Where there is a file, the new one has its permissions; a link is replaced itself.
  explicit FileReplacement(std::filesystem::path path);
  ~FileReplacement();
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;

  FileWriter& writer() { return writer_; }
  /// Its name until then.
  const std::filesystem::path& temporary() const { return temporary_; }
  /// The file is on the disk, and so is its name.
  void finish();

 private:
  void write_over();

  std::filesystem::path path_, temporary_;
  FileWriter writer_;
  bool is_finished_ = false;
};

/// Writes a file by FileReplacement. What is not replaceable is written to.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// Files made, renamed or removed in a folder are so on the disk too, unless it says why not: the folder may not be readable, and the
/// rename itself stands.
std::error_code sync_directory(const std::filesystem::path& folder);

/// Bytes that may still be written to the file system of `path` (which need not be there yet).
uint64_t free_disk_space(std::filesystem::path path);

/// Position of the first byte that is not UTF-8 (overlong forms, surrogates and values beyond U+10FFFF included); nothing if all are.
std::optional<size_t> first_invalid_utf8(std::string_view text);

/// A file's bytes, mapped read-only: pages come and go as the machine likes.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  const char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

/// A folder of its own under TMPDIR or /tmp, gone with all it holds when it goes out of scope. Throws MachineError if there can be none.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace lacuna
