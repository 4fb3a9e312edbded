#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "search/translator.h"

namespace lacuna::serve {

/// Translations by what was asked for, up to a number of bytes; those not used for longest go first. Any thread may use it.
class SentenceCache {
 public:
  /// With 0 bytes it keeps nothing.
  explicit SentenceCache(int64_t most_bytes) : most_bytes_(most_bytes) {}

  std::optional<TranslatedLine> find(const std::string& key);
  /// Keeps all of a translation but its tokens.
  void put(const std::string& key, TranslatedLine line);

  struct Counts {
    int64_t hits = 0, misses = 0, bytes = 0;
  };
  Counts counts() const;

 private:
  struct Entry {
    std::string key;
    TranslatedLine line;
    int64_t bytes;
  };

  const int64_t most_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the one used last first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
  Counts counts_;
};

}  // namespace lacuna::serve
