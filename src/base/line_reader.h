#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace lacuna {

/// A line of text that cannot be taken. Those behind it can: whoever read it goes on with them.
class LineError : public DataError {
 public:
  /// `kind` says in a few words what is wrong with all such lines: "not UTF-8".
  LineError(std::string kind, const std::string& message) : DataError(message), kind_(std::move(kind)) {}
  const std::string& kind() const { return kind_; }

 private:
  std::string kind_;
};

/// What the message of a LineError ends with where --on-error may be given.
inline constexpr char kHowToSkip[] = " (--on-error skip passes over such lines)";

/// Lines that were passed over, as was asked for, in a text of which all else is done.
class PassedOverError : public DataError {
 public:
  using DataError::DataError;
  int exit_code() const override { return 1; }
};

class Decompressor;

/// Bytes of a plain, gzip or zstd file (told apart by their first bytes) or of standard input ("-"), available as soon as they arrive.
class InputStream {
 public:
  /// Throws DataError if the file cannot be read.
  explicit InputStream(const std::filesystem::path& path);
  ~InputStream();

  /// Appends some bytes; false at the end. Throws DataError for a damaged compressed file, and for an unsupported format (zip, xz, bzip2).
  bool read(std::string& bytes);
  /// True if `read` would block.
  bool would_wait() const;
  /// Returns the share of a regular file that was read, but for the last `unused` bytes; 0 for anything else.
  double share_read(size_t unused) const;
  const std::string& name() const { return name_; }
  /// "gzip" or "zstd"; empty for plain text. Known once something was read.
  std::string_view compression() const;

 private:
  size_t read_raw(char* bytes, size_t size);
  void detect_compression();
  bool fill_raw();
  bool decompress_into(std::string& bytes);

  std::string name_;
  int file_ = -1;
  std::string raw_;  ///< read, but neither decompressed nor returned yet
  bool compression_is_known_ = false;
  std::unique_ptr<Decompressor> decompressor_;  ///< null for plain text
};

/// Lines of a plain, gzip or zstd file or of standard input ("-"). Splits at LF only; a CR before it is dropped and counted, a byte order
/// mark at the start is dropped.
class LineReader {
 public:
  /// `first_line` is the number of the file's first line, for a piece of a longer text. Throws DataError if the file cannot be read.
  explicit LineReader(const std::filesystem::path& path, int64_t first_line = 1)
      : stream_(path), first_line_(first_line), line_number_(first_line - 1) {}

  /// Reads the next line; false at the end. Throws LineError for a line of more than 1 MiB, whose beginning `line` then holds, and as
  /// InputStream::read does.
  bool next(std::string& line);
  /// Does the same, and throws LineError with the byte's position for a line that is not UTF-8 or contains a NUL.
  bool next_clean(std::string& line) {
    if (!next(line)) return false;
    require_clean(line);
    return true;
  }
  /// True if `next` would block, even if a part of the line has arrived: the moment to output the results so far. Reads that part, and
  /// throws as `next` does.
  bool would_wait();
  /// True if no line follows. Waits for the next byte, and throws as `next` does.
  bool is_at_end();
  /// Passes over lines, whatever they hold. Returns false if the text ends before.
  bool skip(int64_t lines);
  /// Returns the share of a file's bytes that the lines given so far take; 0 for a pipe or a terminal.
  double share_read() const { return stream_.share_read(compression().empty() ? buffer_.size() - position_ : 0); }
  int64_t line_number() const { return line_number_; }  ///< number of the last line read; the first is `first_line`
  int64_t carriage_returns() const { return carriage_returns_; }
  bool has_byte_order_mark() const { return has_byte_order_mark_; }       ///< known once the first line was read
  std::string_view compression() const { return stream_.compression(); }  ///< "gzip" or "zstd"; empty for plain text; known as above
  /// "file:line" of the last line read.
  std::string place() const { return stream_.name() + ":" + std::to_string(line_number_); }
  /// Throws LineError with the byte's position if the last line read is not UTF-8 or contains a NUL.
  void require_clean(std::string_view line) const;

 private:
  size_t find_line_end();
  void drop_long_line(bool may_wait);
  bool read_more();

  InputStream stream_;
  std::string buffer_;
  size_t position_ = 0;  ///< of the next line in the buffer
  bool is_at_end_ = false;
  bool is_in_long_line_ = false;  ///< the line at `position_`, or its rest, is to be dropped
  int64_t first_line_, line_number_;
  int64_t carriage_returns_ = 0;
  bool has_byte_order_mark_ = false;
};

}  // namespace lacuna
