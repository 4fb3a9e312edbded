#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lacuna {

/// Unpacks a file as its bytes come, in bounded memory. A packed file is one part or several, end to end (gzip's members, zstd's frames).
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  std::string_view packer() const { return packer_; }
  /// Takes bytes from the front of `packed` and appends what they hold to `text`, at most 64 KiB. Throws DataError for what this packer
  /// does not write.
  void unpack(std::string& packed, std::string& text);
  /// True if the bytes taken so far may hold more text than was given: `unpack` gives it, with nothing new in `packed`.
  bool has_more() const { return is_within_part_ && was_filled_; }
  /// Throws DataError if a whole file does not end here.
  void require_end() const;

 protected:
  /// `file`: its name, for errors.
  Unpacker(std::string_view packer, std::string file) : packer_(packer), file_(std::move(file)) {}
  const std::string& file() const { return file_; }
  bool is_within_part() const { return is_within_part_; }
  [[noreturn]] void refuse_as_damaged(const std::string& why) const;

 private:
  /// Drops from `packed` what is used up, and from `room` what is filled. Returns whether a part has begun and not ended.
  virtual bool step(std::string_view& packed, std::span<char>& room) = 0;

  std::string_view packer_;
  std::string file_;
  bool is_within_part_ = false, was_filled_ = false;
};

std::unique_ptr<Unpacker> gzip_unpacker(const std::string& file);
/// Refuses what takes more than 128 MiB of memory, as `zstd` itself does unless told otherwise.
std::unique_ptr<Unpacker> zstd_unpacker(const std::string& file);

}  // namespace lacuna
