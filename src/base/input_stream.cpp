#include "base/input_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/unpacker.h"

namespace lacuna {
namespace {

constexpr size_t kBytesPerRead = 1 << 16;

/// How files of a packer begin. `?` stands for any byte, `%` for one of 0x50 to 0x5F.
struct Packer {
  std::string_view name, magic;
  std::unique_ptr<Unpacker> (*unpacker)(const std::string& file) = nullptr;  // null: such files are refused
};

constexpr Packer kPackers[] = {{"gzip", "\x1F\x8B", gzip_unpacker},
                               {"zip", "PK\x03\x04"},
                               {"zstd", "\x28\xB5\x2F\xFD", zstd_unpacker},
                               {"zstd", "%*M\x18", zstd_unpacker},  // a frame to pass over, as pzstd writes it first
                               {"xz", "\xFD\x37zXZ"},
                               {"bzip2", "BZh?1AY&SY"}};

bool can_begin(std::string_view bytes, std::string_view magic) {
  const auto fits = [](char byte, char wanted) { return byte == wanted || wanted == '?' || (wanted == '%' && (byte & 0xF0) == 0x50); };
  return bytes.size() <= magic.size() && std::equal(bytes.begin(), bytes.end(), magic.begin(), fits);
}

/// The packer whose files may begin with `bytes`; null if none.
const Packer* packer_of(std::string_view bytes) {
  const auto found = std::find_if(std::begin(kPackers), std::end(kPackers), [&](const Packer& one) { return can_begin(bytes, one.magic); });
  return found == std::end(kPackers) ? nullptr : found;
}

}  // namespace

InputStream::InputStream(const std::filesystem::path& path) : name_(path == "-" ? "stdin" : path.string()) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw DataError(name_ + ": is a folder; expected a text file");
  file_ = path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0) throw DataError(name_ + ": cannot be read: " + std::strerror(errno));
}

InputStream::~InputStream() {
  close(file_);
}

size_t InputStream::read_raw(char* bytes, size_t size) {
  for (;;) {
    const ssize_t count = ::read(file_, bytes, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (!may_try_again(file_, POLLIN)) throw DataError(name_ + ": cannot be read: " + std::strerror(errno));
  }
}

void InputStream::find_kind() {
  // Byte by byte, and none beyond the first that is no packer's: whoever types waits for nothing.
  char byte = 0;
  const Packer* packer = packer_of(raw_);
  while (packer != nullptr && raw_.size() < packer->magic.size() && read_raw(&byte, 1) == 1) {
    raw_ += byte;
    packer = packer_of(raw_);
  }
  kind_is_known_ = true;
  if (packer == nullptr || raw_.size() < packer->magic.size()) return;
  if (packer->unpacker == nullptr)
    throw DataError(name_ + ": is packed by " + std::string(packer->name) + "; unpack it, or pack it with gzip or zstd");
  unpacker_ = packer->unpacker(name_);
}

bool InputStream::read(std::string& bytes) {
  if (!kind_is_known_) find_kind();
  if (unpacker_) return unpack_into(bytes);
  if (!raw_.empty()) {
    bytes += raw_;
    raw_.clear();
    return true;
  }
  const size_t old = bytes.size();
  bytes.resize(old + kBytesPerRead);
  bytes.resize(old + read_raw(bytes.data() + old, kBytesPerRead));
  return bytes.size() > old;
}

bool InputStream::fill_raw() {
  if (!raw_.empty()) return true;
  raw_.resize(kBytesPerRead);
  raw_.resize(read_raw(raw_.data(), kBytesPerRead));
  if (raw_.empty()) unpacker_->require_end();
  return !raw_.empty();
}

bool InputStream::unpack_into(std::string& bytes) {
  const size_t old = bytes.size();
  while (bytes.size() == old) {
    if (!unpacker_->has_more() && !fill_raw()) return false;
    unpacker_->unpack(raw_, bytes);
  }
  return true;
}

bool InputStream::would_wait() const {
  if (!raw_.empty() || (unpacker_ && unpacker_->has_more())) return false;
  pollfd wait = {.fd = file_, .events = POLLIN, .revents = 0};
  return poll(&wait, 1, 0) == 0;
}

std::string_view InputStream::packer() const {
  return unpacker_ ? unpacker_->packer() : std::string_view();
}

}  // namespace lacuna
