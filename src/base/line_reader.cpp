#include "base/line_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/compression.h"
#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"
#include "base/system_error.h"

namespace lacuna {
namespace {

constexpr size_t kMaxLineBytes = size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kBytesPerRead = 1 << 16;
constexpr int64_t kLinesBetweenLooks = 1 << 12;  // between checks for interrupts

/// How files of a compressed format begin. `?` stands for any byte, `%` for one of 0x50 to 0x5F.
struct Format {
  std::string_view name, magic;
  std::unique_ptr<Decompressor> (*decompressor)(const std::string& file) = nullptr;  // null: such files are refused
};

constexpr Format kFormats[] = {{"gzip", "\x1F\x8B", gzip_decompressor},
                               {"zip", "PK\x03\x04"},
                               {"zstd", "\x28\xB5\x2F\xFD", zstd_decompressor},
                               {"zstd", "%*M\x18", zstd_decompressor},  // a skippable frame, which pzstd writes first
                               {"xz", "\xFD\x37zXZ"},
                               {"bzip2", "BZh?1AY&SY"}};

bool can_begin(std::string_view bytes, std::string_view magic) {
  const auto fits = [](char byte, char wanted) { return byte == wanted || wanted == '?' || (wanted == '%' && (byte & 0xF0) == 0x50); };
  return bytes.size() <= magic.size() && std::equal(bytes.begin(), bytes.end(), magic.begin(), fits);
}

/// The format whose files may begin with `bytes`; null if none.
const Format* format_of(std::string_view bytes) {
  const auto found = std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& one) { return can_begin(bytes, one.magic); });
  return found == std::end(kFormats) ? nullptr : found;
}

}  // namespace

InputStream::InputStream(const std::filesystem::path& path) : name_(path == "-" ? "stdin" : path.string()) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw DataError(name_ + ": is a folder; expected a text file");
  file_ = path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (file_ < 0) fail_by(errno, name_ + ": cannot be read: ");
}

InputStream::~InputStream() {
  close(file_);
}

size_t InputStream::read_raw(char* bytes, size_t size) {
  for (;;) {
    wait_to_read(file_, name_);
    const ssize_t count = ::read(file_, bytes, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (!may_try_again(file_, POLLIN)) fail_by(errno, name_ + ": cannot be read: ");
  }
}

void InputStream::detect_compression() {
  // Byte by byte up to the first that fits no format, so that somebody who types need not wait.
  char byte = 0;
  const Format* format = format_of(raw_);
  while (format != nullptr && raw_.size() < format->magic.size() && read_raw(&byte, 1) == 1) {
    raw_ += byte;
    format = format_of(raw_);
  }
  compression_is_known_ = true;
  if (format == nullptr || raw_.size() < format->magic.size()) return;
  if (format->decompressor == nullptr)
    throw DataError(name_ + ": is compressed with " + std::string(format->name) + "; decompress it, or use gzip or zstd");
  decompressor_ = format->decompressor(name_);
}

bool InputStream::read(std::string& bytes) {
  if (!compression_is_known_) detect_compression();
  if (decompressor_) return decompress_into(bytes);
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
  if (raw_.empty()) decompressor_->require_end();
  return !raw_.empty();
}

bool InputStream::decompress_into(std::string& bytes) {
  const size_t old = bytes.size();
  while (bytes.size() == old) {
    if (!decompressor_->has_more() && !fill_raw()) return false;
    decompressor_->decompress(raw_, bytes);
  }
  return true;
}

bool InputStream::would_wait() const {
  if (!raw_.empty() || (decompressor_ && decompressor_->has_more())) return false;
  pollfd wait = {.fd = file_, .events = POLLIN, .revents = 0};
  return poll(&wait, 1, 0) == 0;
}

double InputStream::share_read(size_t unused) const {
  struct stat status = {};
  if (fstat(file_, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0) return 0;
  const off_t used = lseek(file_, 0, SEEK_CUR) - static_cast<off_t>(raw_.size() + unused);
  return std::clamp(static_cast<double>(used) / static_cast<double>(status.st_size), 0.0, 1.0);
}

std::string_view InputStream::compression() const {
  return decompressor_ ? decompressor_->format() : std::string_view();
}

/// Returns where in the buffer the next line ends, reading more as needed. At the end of the file, or once the line is too long, it is the
/// end of the buffer.
size_t LineReader::find_line_end() {
  size_t searched = 0;  // bytes of the line known to contain no line end
  for (;;) {
    const size_t end = buffer_.find('\n', position_ + searched);
    if (end != std::string::npos) return end;
    if (buffer_.size() - position_ > kMaxLineBytes) return buffer_.size();
    searched = buffer_.size() - position_;
    if (!read_more()) return buffer_.size();
  }
}

/// Appends some bytes to the buffer, which then begins with the next line. False at the end; a terminal is read from no more after it.
bool LineReader::read_more() {
  buffer_.erase(0, position_);
  position_ = 0;
  is_at_end_ = is_at_end_ || !stream_.read(buffer_);
  return !is_at_end_;
}

/// Drops what is left of a line that was too long; unless it may wait, only as much of it as is there.
void LineReader::drop_long_line(bool may_wait) {
  while (is_in_long_line_) {
    const size_t end = buffer_.find('\n', position_);
    is_in_long_line_ = end == std::string::npos;
    position_ = is_in_long_line_ ? buffer_.size() : end + 1;
    if (is_in_long_line_ && ((!may_wait && stream_.would_wait()) || !read_more())) return;
  }
}

bool LineReader::would_wait() {
  drop_long_line(/*may_wait=*/false);
  if (is_in_long_line_) return !is_at_end_;
  while (buffer_.find('\n', position_) == std::string::npos) {
    if (stream_.would_wait()) return true;
    const bool is_too_long = buffer_.size() - position_ > kMaxLineBytes;  // `next` will throw
    if (is_too_long || !read_more()) return false;
  }
  return false;
}

bool LineReader::is_at_end() {
  drop_long_line(/*may_wait=*/true);
  return position_ == buffer_.size() && !read_more();
}

bool LineReader::skip(int64_t lines) {
  std::string line;
  for (; lines > 0; --lines) {
    if (lines % kLinesBetweenLooks == 0) stop_if_interrupted("reading " + stream_.name());
    try {
      if (!next(line)) return false;
    } catch (const LineError&) {  // a long line is one, too
    }
  }
  return true;
}

bool LineReader::next(std::string& line) {
  drop_long_line(/*may_wait=*/true);
  const size_t end = find_line_end(), length = end - position_;
  if (position_ == buffer_.size()) return false;
  line.assign(buffer_, position_, std::min(length, kMaxLineBytes));
  ++line_number_;
  is_in_long_line_ = length > kMaxLineBytes;
  if (is_in_long_line_) throw LineError("longer than 1 MiB", place() + ": the line is longer than 1 MiB; is this a text file?");
  position_ = std::min(end + 1, buffer_.size());
  if (line_number_ == first_line_ && line.starts_with(kByteOrderMark)) {
    line.erase(0, kByteOrderMark.size());
    has_byte_order_mark_ = true;
  }
  if (!line.empty() && line.back() == '\r') {
    line.pop_back();
    ++carriage_returns_;
  }
  return true;
}

void LineReader::require_clean(std::string_view line) const {
  const size_t nul = line.find('\0');
  if (const auto bad = first_invalid_utf8(line); bad && *bad < nul)  // UTF-16 has NULs, but its byte order mark comes first
    throw LineError("not UTF-8",
                    place() + ": byte " + std::to_string(*bad + 1) + " is not UTF-8; convert the file (iconv -t UTF-8) or remove the line");
  if (nul != std::string_view::npos)
    throw LineError("with NUL bytes",
                    place() + ": byte " + std::to_string(nul + 1) + " is NUL; expected UTF-8 text. Remove it (tr -d '\\000')");
}

}  // namespace lacuna
