#include "base/input_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <string_view>

#include "base/error.h"
#include "base/files.h"

namespace lacuna {
namespace {

constexpr size_t kBytesPerRead = 1 << 16;

/// How files of a packer begin. `?` stands for any byte.
struct Packer {
  std::string_view name, magic;
};

constexpr std::string_view kGzip = "gzip";
constexpr Packer kPackers[] = {
    {kGzip, "\x1F\x8B"}, {"zip", "PK\x03\x04"}, {"zstd", "\x28\xB5\x2F\xFD"}, {"xz", "\xFD\x37zXZ"}, {"bzip2", "BZh?1AY&SY"}};

bool can_begin(std::string_view bytes, std::string_view magic) {
  const auto fits = [](char byte, char wanted) { return byte == wanted || wanted == '?'; };
  return bytes.size() <= magic.size() && std::equal(bytes.begin(), bytes.end(), magic.begin(), fits);
}

/// The packer whose files may begin with `bytes`; null if none.
const Packer* packer_of(std::string_view bytes) {
  const auto found = std::find_if(std::begin(kPackers), std::end(kPackers), [&](const Packer& one) { return can_begin(bytes, one.magic); });
  return found == std::end(kPackers) ? nullptr : found;
}

}  // namespace

struct InputStream::Inflater {
  z_stream state = {};
  bool in_member = false;  // a gzip file is one member or several, end to end

  Inflater() {
    constexpr int kGzipFormat = 16;
    if (inflateInit2(&state, MAX_WBITS + kGzipFormat) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&state); }
};

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
  if (packer->name != kGzip) throw DataError(name_ + ": is packed by " + std::string(packer->name) + "; unpack it, or pack it with gzip");
  inflater_ = std::make_unique<Inflater>();
}

bool InputStream::read(std::string& bytes) {
  if (!kind_is_known_) find_kind();
  if (inflater_) return inflate_into(bytes);
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
  if (raw_.empty() && inflater_->in_member) throw DataError(name_ + ": damaged gzip file: it ends too early");
  return !raw_.empty();
}

bool InputStream::inflate_into(std::string& bytes) {
  const size_t old = bytes.size();
  while (bytes.size() == old) {
    if (!fill_raw()) return false;
    if (!inflater_->in_member) {  // tapes and disks fill up with zeros what they hold, and gzip takes no offence
      raw_.erase(0, std::min(raw_.find_first_not_of('\0'), raw_.size()));
      if (raw_.empty()) continue;
    }
    z_stream& state = inflater_->state;
    bytes.resize(old + kBytesPerRead);
    state.next_in = reinterpret_cast<Bytef*>(raw_.data());
    state.avail_in = static_cast<uInt>(raw_.size());
    state.next_out = reinterpret_cast<Bytef*>(bytes.data() + old);
    state.avail_out = kBytesPerRead;
    const int code = inflate(&state, Z_NO_FLUSH);
    bytes.resize(old + kBytesPerRead - state.avail_out);
    raw_.erase(0, raw_.size() - state.avail_in);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
      throw DataError(name_ + ": damaged gzip file: " + (state.msg != nullptr ? state.msg : "it cannot be unpacked"));
    inflater_->in_member = code != Z_STREAM_END;
    if (code == Z_STREAM_END) inflateReset(&state);
  }
  return true;
}

bool InputStream::would_wait() const {
  if (!raw_.empty()) return false;
  pollfd wait = {.fd = file_, .events = POLLIN, .revents = 0};
  return poll(&wait, 1, 0) == 0;
}

}  // namespace lacuna
