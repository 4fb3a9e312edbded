#include "base/content_hash.h"

#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <new>

#include "base/files.h"

namespace lacuna {

struct ContentHash::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(xxh);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(xxh); }
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {}
ContentHash::~ContentHash() = default;

void ContentHash::add_piece(std::string_view bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

void ContentHash::add(std::string_view part) {
  const uint64_t size = part.size();
  XXH3_128bits_update(state_->xxh, &size, sizeof size);
  add_piece(part);
}

std::string ContentHash::text() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string hash_of(std::string_view bytes) {
  ContentHash hash;
  hash.add_piece(bytes);
  return hash.text();
}

std::string hash_of_files(const std::vector<std::string>& paths) {
  ContentHash hash;
  for (const std::string& path : paths) {
    const MappedFile file(path);
    hash.add({file.data(), file.size()});
  }
  return hash.text();
}

}  // namespace lacuna
