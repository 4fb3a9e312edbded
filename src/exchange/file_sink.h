#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/durable_files.h"

namespace lacuna {

/// Takes the bytes of a file, piece by piece.
using PieceWriter = std::function<void(std::string_view)>;

/// Takes the files of an export, one after the other.
class FileSink {
 public:
  virtual ~FileSink() = default;
  /// Adds a file whose bytes `write` passes on. `name` may stand in folders: "model/config.json".
  virtual void add(const std::string& name, const std::function<void(const PieceWriter&)>& write) = 0;
  void add(const std::string& name, std::string_view bytes) {
    add(name, [bytes](const PieceWriter& put) { put(bytes); });
  }
};

/// Files of a folder, which must exist. Each is on the disk when `add` returns.
class FolderSink : public FileSink {
 public:
  explicit FolderSink(std::filesystem::path folder) : folder_(std::move(folder)) {}
  using FileSink::add;
  void add(const std::string& name, const std::function<void(const PieceWriter&)>& write) override;

 private:
  std::filesystem::path folder_;
};

/// Members of a zip archive, stored without compression: weights hardly have any. Names are UTF-8, times are 1 January 1980, so that the
/// same members make the same file. Throws DataError for what the format cannot hold without extensions: 4 GiB.
class ZipSink : public FileSink {
 public:
  /// Appends to `file`, which must be empty and outlive this object.
  explicit ZipSink(FileWriter& file) : file_(file) {}
  using FileSink::add;
  void add(const std::string& name, const std::function<void(const PieceWriter&)>& write) override;
  /// Writes the list of members, which ends the archive. The file itself is not finished by it.
  void finish();

 private:
  struct Member {
    std::string name;
    uint32_t begin = 0, size = 0, crc32 = 0;
  };
  void put(std::string_view bytes);
  uint32_t place() const;

  FileWriter& file_;
  uint64_t written_ = 0;
  std::vector<Member> members_;
};

/// Passes the files on under a folder's name.
class SubfolderSink : public FileSink {
 public:
  SubfolderSink(FileSink& parent, const std::string& folder) : parent_(parent), prefix_(folder + "/") {}
  using FileSink::add;
  void add(const std::string& name, const std::function<void(const PieceWriter&)>& write) override { parent_.add(prefix_ + name, write); }

 private:
  FileSink& parent_;
  std::string prefix_;
};

}  // namespace lacuna
