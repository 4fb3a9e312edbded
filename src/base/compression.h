#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/files.h"

/// gzip and zstd streams.
namespace lacuna {

/// Decompresses a file as its bytes arrive, in bounded memory. A file is one compressed part or several, end to end.
class Decompressor {
 public:
  virtual ~Decompressor() = default;
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  /// "gzip" or "zstd".
  std::string_view format() const { return format_; }
  /// Takes bytes from the front of `packed` and appends their contents to `text`, at most 64 KiB. Throws DataError for damaged input.
  void decompress(std::string& packed, std::string& text);
  /// True if the bytes taken so far may hold more text than was returned: call `decompress` again, with nothing new in `packed`.
  bool has_more() const { return is_within_part_ && was_filled_; }
  /// Throws DataError if a whole file does not end here.
  void require_end() const {
    if (is_within_part_) refuse_as_damaged("it ends too early");
  }

 protected:
  /// `file` is the file's name, for errors.
  Decompressor(std::string_view format, std::string file) : format_(format), file_(std::move(file)) {}
  const std::string& file() const { return file_; }
  bool is_within_part() const { return is_within_part_; }
  [[noreturn]] void refuse_as_damaged(const std::string& why) const;

 private:
  /// Drops the bytes it used from `packed` and those it filled from `room`. Returns whether a part has begun and not ended.
  virtual bool step(std::string_view& packed, std::span<char>& room) = 0;

  std::string_view format_;
  std::string file_;
  bool is_within_part_ = false, was_filled_ = false;
};

std::unique_ptr<Decompressor> gzip_decompressor(const std::string& file);
/// Refuses what takes more than 128 MiB of memory, as `zstd` itself does unless told otherwise.
std::unique_ptr<Decompressor> zstd_decompressor(const std::string& file);

/// Writes text to a file in compressed form. It stores neither name nor time: the same text makes the same file.
class CompressedWriter {
 public:
  virtual ~CompressedWriter() = default;
  virtual void write(std::string_view text) = 0;
  /// Writes what is left and the end of the format; the file itself is not finished by it.
  virtual void finish() = 0;
};

/// Returns the writer for a file name that ends in .gz (gzip) or .zst (zstd); null for other names. `file` must outlive it.
std::unique_ptr<CompressedWriter> compressed_writer(const std::filesystem::path& name, FileWriter& file);

}  // namespace lacuna
