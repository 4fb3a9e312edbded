#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace lacuna {

class Unpacker;

/// Bytes of a plain, gzip or zstd file (told apart by their first bytes), or of standard input ("-"), given as soon as they are there.
class InputStream {
 public:
  /// Throws DataError if the file cannot be read.
  explicit InputStream(const std::filesystem::path& path);
  ~InputStream();
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  /// Appends some bytes; false at the end. Throws DataError for a damaged packed file, and for a file of another packer.
  bool read(std::string& bytes);
  /// True if `read` would have to wait for whoever writes the other end.
  bool would_wait() const;
  const std::string& name() const { return name_; }
  /// "gzip" or "zstd"; empty for plain text. Known once something was read.
  std::string_view packer() const;

 private:
  size_t read_raw(char* bytes, size_t size);
  void find_kind();
  bool fill_raw();
  bool unpack_into(std::string& bytes);

  std::string name_;
  int file_ = -1;
  std::string raw_;  ///< read and not given yet
  bool kind_is_known_ = false;
  std::unique_ptr<Unpacker> unpacker_;  ///< of a packed file
};

}  // namespace lacuna
