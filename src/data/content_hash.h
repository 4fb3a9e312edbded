#pragma once

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
  void add(std::string_view bytes);
  std::string text() const;  ///< 32 hexadecimal digits

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Of all bytes of the files, one after the other, and of each one's length. Gigabytes a second, so that nothing but the content has to be
/// trusted.
std::string hash_of_files(const std::vector<std::string>& paths);

}  // namespace lacuna
