#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace lacuna {

/// Throws DataError if `path` cannot be read as a file: missing, a folder, not readable, empty. `what` says what it should be ("training
/// corpus").
void require_readable_file(const std::filesystem::path& path, const std::string& what);

std::string read_file(const std::filesystem::path& path);

/// Writes a file under a temporary name, syncs it and renames it: the old file or the new one is there at any instant, never half of one.
/// Throws MachineError (disk full, no permission); the temporary file is then gone.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// Position of the first byte that is not UTF-8 (overlong forms, surrogates and values beyond U+10FFFF included); nothing if all are.
std::optional<size_t> first_invalid_utf8(std::string_view text);

/// Lines of a plain or gzip file (told apart by their first bytes) or of stdin ("-"). Splits at LF only; a CR before it is dropped and
/// counted.
class LineReader {
 public:
  /// Throws DataError if the file cannot be read.
  explicit LineReader(const std::filesystem::path& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// False at the end. Throws DataError for a line of more than 1 MiB and for a damaged gzip file.
  bool next(std::string& line);
  int64_t line_number() const { return line_number_; }  ///< of the line given last, from 1
  int64_t carriage_returns() const { return carriage_returns_; }
  /// "file:line" of the line given last.
  std::string place() const;
  /// Throws DataError with the byte if the line given last is not UTF-8 or holds a NUL.
  void require_clean(std::string_view line) const;

 private:
  struct Stream;
  bool fill();

  std::filesystem::path path_;
  std::unique_ptr<Stream> stream_;
  std::string buffer_;
  size_t position_ = 0;
  int64_t line_number_ = 0;
  int64_t carriage_returns_ = 0;
};

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

}  // namespace lacuna
