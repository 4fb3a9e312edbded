#include "parts/input_digest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/system_error.h"

namespace lacuna {
namespace {

constexpr uint64_t kPieces = 64, kPieceBytes = kMostSampledBytes / kPieces;

/// Returns where a piece of a file begins: all of a small file has one, a large one is sampled.
uint64_t begin_of_piece(uint64_t piece, uint64_t size) {
  if (size <= kMostSampledBytes) return piece * kPieceBytes;
  const uint64_t last = size - kPieceBytes, step = last / (kPieces - 1);
  return piece + 1 == kPieces ? last : piece * step;
}

/// An open file, closed at the end.
struct SampledFile {
  explicit SampledFile(const std::filesystem::path& path)
      : name(path.string()), file(uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); })) {
    if (file < 0 || fstat(file, &status) != 0) fail_by(errno, name + ": cannot be read: ");
  }
  ~SampledFile() { close(file); }
  SampledFile(const SampledFile&) = delete;
  SampledFile& operator=(const SampledFile&) = delete;

  void read(uint64_t at, std::string& bytes) const {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t count = uninterrupted([&] { return pread(file, &bytes[done], bytes.size() - done, static_cast<off_t>(at + done)); });
      if (count < 0) fail_by(errno, name + ": cannot be read: ");
      if (count == 0) throw DataError(name + ": became shorter while it was read; expected an input that nobody changes");
      done += static_cast<size_t>(count);
    }
  }

  std::string name;
  int file;
  struct stat status = {};
};

}  // namespace

FileDigest sampled_digest_of(const std::filesystem::path& path) {
  require_rereadable_file(path);
  const SampledFile file(path);
  const auto size = static_cast<uint64_t>(file.status.st_size);
  ContentHash hash;
  std::string bytes;
  for (uint64_t piece = 0; piece < std::min(kPieces, (size + kPieceBytes - 1) / kPieceBytes); ++piece) {
    const uint64_t at = begin_of_piece(piece, size);
    bytes.resize(std::min(kPieceBytes, size - at));
    file.read(at, bytes);
    hash.add_piece(bytes);
  }
  return {size, hash.text()};
}

}  // namespace lacuna
