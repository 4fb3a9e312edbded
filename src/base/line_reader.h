#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/input_stream.h"

namespace lacuna {

/// Lines of a plain, gzip or zstd file or of standard input ("-"). Splits at LF only; a CR before it is dropped and counted, a byte order
/// mark at the start is dropped.
class LineReader {
 public:
  /// Throws DataError if the file cannot be read.
  explicit LineReader(const std::filesystem::path& path) : stream_(path) {}

  /// False at the end. Throws DataError for a line of more than 1 MiB, for a damaged packed file, and for a file of another packer.
  bool next(std::string& line);
  /// True if `next` would have to wait for whoever writes, though a part of the line may be there: the moment to give what is known so far.
  /// Reads that part, and throws as `next` does.
  bool would_wait();
  int64_t line_number() const { return line_number_; }  ///< of the line given last, from 1
  int64_t carriage_returns() const { return carriage_returns_; }
  bool has_byte_order_mark() const { return has_byte_order_mark_; }  ///< once the first line was given
  std::string_view packer() const { return stream_.packer(); }       ///< likewise: "gzip" or "zstd"; empty for plain text
  /// "file:line" of the line given last.
  std::string place() const { return stream_.name() + ":" + std::to_string(line_number_); }
  /// Throws DataError with the byte if the line given last is not UTF-8 or holds a NUL.
  void require_clean(std::string_view line) const;

 private:
  size_t find_line_end();
  bool read_more();

  InputStream stream_;
  std::string buffer_;
  size_t position_ = 0;  ///< in the buffer, of the next line
  bool is_at_end_ = false;
  int64_t line_number_ = 0;
  int64_t carriage_returns_ = 0;
  bool has_byte_order_mark_ = false;
};

}  // namespace lacuna
