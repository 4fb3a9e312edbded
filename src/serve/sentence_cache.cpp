#include "serve/sentence_cache.h"

namespace lacuna::serve {
namespace {

constexpr int64_t kBytesOfEntry = 256;  // beside what follows

int64_t bytes_of(const std::string& key, const TranslatedLine& line) {
  int64_t bytes = kBytesOfEntry + std::ssize(key);
  for (const Translation& one : line.translations)
    bytes += static_cast<int64_t>(sizeof(Translation) + one.text.size() + one.alignment.size() * sizeof(one.alignment.front()) +
                                  one.tokens.size() * (sizeof(TokenId) + sizeof(float)));
  return bytes;
}

}  // namespace

std::optional<TranslatedLine> SentenceCache::find(const std::string& key) {
  if (most_bytes_ == 0) return {};
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    ++counts_.misses;
    return {};
  }
  ++counts_.hits;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->line;
}

void SentenceCache::put(const std::string& key, TranslatedLine line) {
  if (most_bytes_ == 0) return;
  const int64_t bytes = bytes_of(key, line);
  const std::lock_guard lock(mutex_);
  if (bytes > most_bytes_ || by_key_.contains(key)) return;
  entries_.push_front({key, std::move(line), bytes});
  by_key_.emplace(entries_.front().key, entries_.begin());
  counts_.bytes += bytes;
  while (counts_.bytes > most_bytes_) {
    counts_.bytes -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

SentenceCache::Counts SentenceCache::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace lacuna::serve
