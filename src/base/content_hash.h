#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct XXH3_state_s;  // of xxhash.h

namespace lacuna {

/// XXH3-128 of bytes that are added piece by piece.
class ContentHash {
 public:
  ContentHash();
  /// Adds bytes of a text; how the text is cut into pieces does not change the hash.
  void add_piece(std::string_view bytes);
  /// Adds one of several parts, with its length: "ab", "c" has another hash than "a", "bc".
  void add(std::string_view part);
  std::string text() const;  ///< 32 hexadecimal digits, as `xxh128sum` prints them

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

/// Returns the hash of `bytes`, 32 hexadecimal digits.
std::string hash_of(std::string_view bytes);

/// The size and hash of a file.
struct FileDigest {
  uint64_t bytes = 0;
  std::string xxh3_128;  ///< 32 hexadecimal digits
  bool operator==(const FileDigest&) const = default;
};

/// Returns the digest of a file. Throws DataError with its name if it cannot be read.
FileDigest digest_of(const std::filesystem::path& file);

/// Returns the hash of the length and the bytes of each file in turn. Fast enough (gigabytes a second) to identify a corpus by its content
/// alone. Throws DataError for a file that cannot be read or changes meanwhile.
std::string hash_of_files(const std::vector<std::string>& paths);

}  // namespace lacuna
