#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

/// XXH3-128 of bytes that come piece by piece.
class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;
  /// Wherever a text is cut, its pieces have the same hash.
  void add_piece(std::string_view bytes);
  /// One of several parts, with its length: "ab", "c" has another hash than "a", "bc".
  void add(std::string_view part);
  std::string text() const;  ///< 32 hexadecimal digits, as `xxh128sum` prints them

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hash_of(std::string_view bytes);

/// What a file holds.
struct FileDigest {
  uint64_t bytes = 0;
  std::string xxh3_128;  ///< 32 hexadecimal digits
  bool operator==(const FileDigest&) const = default;
};

/// Throws DataError naming the file if it cannot be read.
FileDigest digest_of(const std::filesystem::path& file);

/// Of all bytes of the files, one after the other, and of each one's length. Gigabytes a second, so that nothing but the content has to be
/// trusted. Throws DataError for a file that cannot be read, or changes meanwhile.
std::string hash_of_files(const std::vector<std::string>& paths);

}  // namespace lacuna
