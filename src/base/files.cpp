#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLineBytes = size_t{1} << 20;
constexpr unsigned kBufferBytes = 1 << 16;

[[noreturn]] void fail_to_write(const fs::path& path, size_t bytes) {
  throw MachineError(path.string() + ": " + std::to_string(bytes) + " bytes cannot be written: " + std::strerror(errno));
}

}  // namespace

void require_readable_file(const fs::path& path, const std::string& what) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (path.empty()) throw DataError(what + ": no file is named");
  if (!fs::exists(status)) throw DataError(path.string() + ": there is no such file; expected " + what);
  if (fs::is_directory(status)) throw DataError(path.string() + ": is a folder; expected " + what);
  if (access(path.c_str(), R_OK) != 0) throw DataError(path.string() + ": cannot be read (" + std::strerror(errno) + "); expected " + what);
  if (fs::is_regular_file(status) && fs::file_size(path, error) == 0) throw DataError(path.string() + ": is empty; expected " + what);
}

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  if (!stream.is_open() || stream.bad()) throw DataError(path.string() + ": cannot be read");
  return bytes.str();
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  const fs::path temporary = path.string() + ".tmp" + std::to_string(getpid());
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) fail_to_write(path, bytes.size());
  size_t written = 0;
  bool good = true;
  while (good && written < bytes.size()) {
    const ssize_t count = write(file, bytes.data() + written, bytes.size() - written);
    good = count > 0 || (count < 0 && errno == EINTR);
    if (count > 0) written += static_cast<size_t>(count);
  }
  good = good && fsync(file) == 0;
  const int cause = errno;
  close(file);
  if (!good || rename(temporary.c_str(), path.c_str()) != 0) {
    if (!good) errno = cause;
    unlink(temporary.c_str());
    fail_to_write(path, bytes.size());
  }
  const int folder = open(path.has_parent_path() ? path.parent_path().c_str() : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  fsync(folder);
  close(folder);
}

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  for (size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    if (lead < 0x80) {
      ++i;
    } else if (lead >= 0xC2 && lead <= 0xDF && continues(i + 1)) {
      i += 2;
    } else if (lead >= 0xE0 && lead <= 0xEF && continues(i + 1) && continues(i + 2) && !(lead == 0xE0 && byte(i + 1) < 0xA0) &&
               !(lead == 0xED && byte(i + 1) > 0x9F)) {
      i += 3;
    } else if (lead >= 0xF0 && lead <= 0xF4 && continues(i + 1) && continues(i + 2) && continues(i + 3) &&
               !(lead == 0xF0 && byte(i + 1) < 0x90) && !(lead == 0xF4 && byte(i + 1) > 0x8F)) {
      i += 4;
    } else {
      return i;
    }
  }
  return std::nullopt;
}

struct LineReader::Stream {
  gzFile file = nullptr;
};

LineReader::LineReader(const fs::path& path) : path_(path), stream_(std::make_unique<Stream>()) {
  if (path == "-") {
    path_ = "stdin";
    stream_->file = gzdopen(dup(STDIN_FILENO), "rb");
  } else {
    if (fs::is_directory(path)) throw DataError(path.string() + ": is a folder; expected a text file");
    stream_->file = gzopen(path.c_str(), "rb");  // reads plain files as they are
  }
  if (stream_->file == nullptr) throw DataError(path_.string() + ": cannot be read: " + std::strerror(errno));
  gzbuffer(stream_->file, kBufferBytes);
}

LineReader::~LineReader() {
  gzclose(stream_->file);
}

bool LineReader::fill() {
  buffer_.erase(0, position_);
  position_ = 0;
  const size_t old = buffer_.size();
  buffer_.resize(old + kBufferBytes);
  const int count = gzread(stream_->file, buffer_.data() + old, kBufferBytes);
  int code = Z_OK;
  const char* message = gzerror(stream_->file, &code);
  if (count < 0 || code == Z_BUF_ERROR)
    throw DataError(path_.string() + ": damaged gzip file after line " + std::to_string(line_number_) + ": " + message);
  buffer_.resize(old + static_cast<size_t>(std::max(count, 0)));
  return count > 0;
}

bool LineReader::next(std::string& line) {
  size_t searched = position_;
  size_t end;
  while ((end = buffer_.find('\n', searched)) == std::string::npos) {
    const size_t length = buffer_.size() - position_;
    if (length > kMaxLineBytes)
      throw DataError(path_.string() + ":" + std::to_string(line_number_ + 1) + ": the line is longer than 1 MiB; is this a text file?");
    const bool more = fill();
    searched = position_ + length;
    if (!more) {
      if (length == 0) return false;
      end = buffer_.size();
      break;
    }
  }
  line.assign(buffer_, position_, end - position_);
  position_ = std::min(end + 1, buffer_.size());
  ++line_number_;
  if (!line.empty() && line.back() == '\r') {
    line.pop_back();
    ++carriage_returns_;
  }
  return true;
}

std::string LineReader::place() const {
  return path_.string() + ":" + std::to_string(line_number_);
}

void LineReader::require_clean(std::string_view line) const {
  if (const size_t nul = line.find('\0'); nul != std::string_view::npos)
    throw DataError(place() + ": byte " + std::to_string(nul + 1) + " is NUL; expected UTF-8 text. Remove it (tr -d '\\000')");
  if (const auto bad = first_invalid_utf8(line))
    throw DataError(place() + ": byte " + std::to_string(*bad + 1) + " is not UTF-8; convert the file (iconv -t UTF-8) or remove the line");
}

MappedFile::MappedFile(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (file < 0 || fstat(file, &status) != 0) {
    if (file >= 0) close(file);
    throw DataError(path.string() + ": cannot be read: " + std::strerror(errno));
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ > 0) {
    void* mapped = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
      close(file);
      throw MachineError(path.string() + ": cannot be mapped: " + std::strerror(errno));
    }
    data_ = static_cast<const char*>(mapped);
  }
  close(file);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
}

}  // namespace lacuna
