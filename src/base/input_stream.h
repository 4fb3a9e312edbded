#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace lacuna {

/// Bytes of a plain or gzip file (told apart by their first bytes), or of standard input ("-"), given as soon as they are there.
class InputStream {
 public:
  /// Throws DataError if the file cannot be read.
  explicit InputStream(const std::filesystem::path& path);
  ~InputStream();
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  /// Appends some bytes; false at the end. Throws DataError for a damaged gzip file, and for a file of another packer.
  bool read(std::string& bytes);
  /// True if `read` would have to wait for whoever writes the other end.
  bool would_wait() const;
  const std::string& name() const { return name_; }
  bool is_gzip() const { return inflater_ != nullptr; }  ///< once something was read

 private:
  struct Inflater;
  size_t read_raw(char* bytes, size_t size);
  void find_kind();
  bool fill_raw();
  bool inflate_into(std::string& bytes);

  std::string name_;
  int file_ = -1;
  std::string raw_;  ///< read and not given yet
  bool kind_is_known_ = false;
  std::unique_ptr<Inflater> inflater_;  ///< of a gzip file
};

}  // namespace lacuna
