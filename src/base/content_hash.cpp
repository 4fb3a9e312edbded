#include "base/content_hash.h"

#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <limits>
#include <new>

#include "base/error.h"
#include "base/files.h"

namespace lacuna {
namespace {

constexpr size_t kBytesPerPiece = 1 << 20;

/// Adds the rest of the file and returns its size in bytes. Stops soon after `most` bytes, because a file may grow for ever.
uint64_t add_bytes(ContentHash& hash, const FileReader& file, uint64_t most) {
  std::string buffer(kBytesPerPiece, '\0');
  uint64_t done = 0;
  while (const size_t count = file.read(buffer.data(), buffer.size())) {
    hash.add_piece({buffer.data(), count});
    done += count;
    if (done > most) break;
  }
  return done;
}

/// Adds a file as ContentHash::add adds a part.
void add_file(ContentHash& hash, const std::string& path) {
  const FileReader file(path);
  const uint64_t size = file.size();
  hash.add_piece({reinterpret_cast<const char*>(&size), sizeof size});
  if (add_bytes(hash, file, size) != size) throw DataError(path + ": it changed while it was read; start again when nothing writes to it");
}

}  // namespace

void ContentHash::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

ContentHash::ContentHash() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_.get());
}

void ContentHash::add_piece(std::string_view bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

void ContentHash::add(std::string_view part) {
  const uint64_t size = part.size();
  XXH3_128bits_update(state_.get(), &size, sizeof size);
  add_piece(part);
}

std::string ContentHash::text() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string hash_of(std::string_view bytes) {
  ContentHash hash;
  hash.add_piece(bytes);
  return hash.text();
}

FileDigest digest_of(const std::filesystem::path& file) {
  ContentHash hash;
  const uint64_t bytes = add_bytes(hash, FileReader(file), std::numeric_limits<uint64_t>::max());
  return {bytes, hash.text()};
}

std::string hash_of_files(const std::vector<std::string>& paths) {
  ContentHash hash;
  for (const std::string& path : paths) add_file(hash, path);
  return hash.text();
}

}  // namespace lacuna
