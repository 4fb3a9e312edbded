#include "base/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/system_error.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBytesPerWrite = 1 << 18;
constexpr int kMostLinks = 40;  // to follow, as Linux does

/// Returns the number of the open file of this process that `path` names, directly or through links such as /dev/stdout.
std::optional<int> open_file_of(fs::path path) {
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, error); ++i) {
    const fs::path folder = fs::canonical(path.has_parent_path() ? path.parent_path() : ".", error);
    if (error) return {};
    if (folder == "/proc/" + std::to_string(getpid()) + "/fd") return std::atoi(path.filename().c_str());
    path = folder / fs::read_symlink(path, error);
  }
  return {};
}

}  // namespace

void require_readable_file(const fs::path& path, const std::string& what) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (path.empty()) throw DataError(what + ": no file is named");
  if (status.type() == fs::file_type::none) fail_by(error.value(), path.string() + ": cannot be read (", "); expected " + what);
  if (!fs::exists(status)) throw DataError(path.string() + ": there is no such file; expected " + what);
  if (fs::is_directory(status)) throw DataError(path.string() + ": is a folder; expected " + what);
  if (access(path.c_str(), R_OK) != 0) fail_by(errno, path.string() + ": cannot be read (", "); expected " + what);
  if (fs::is_regular_file(status) && fs::file_size(path, error) == 0) throw DataError(path.string() + ": is empty; expected " + what);
}

void require_rereadable_file(const fs::path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status))
    throw DataError(path.string() + ": is a pipe or a device, and is read more than once; expected a file");
}

void require_corpus_file(const fs::path& path, const std::string& what) {
  require_readable_file(path, what);
  require_rereadable_file(path);
}

FileReader::FileReader(fs::path path) : FileReader(std::move(path), 0) {}

FileReader::FileReader(fs::path path, int flags)
    : path_(std::move(path)), file_(uninterrupted([&] { return open(path_.c_str(), O_RDONLY | O_CLOEXEC | flags); })) {
  const bool is_link = flags != 0 && file_ < 0 && errno == ELOOP;
  if (file_ < 0 && !is_link) fail();
  struct stat status = {};
  if (flags == 0 || (!is_link && fstat(file_, &status) == 0 && S_ISREG(status.st_mode))) return;
  if (!is_link) close(file_);
  throw DataError(path_.string() + (is_link ? ": is a link" : ": is no file") +
                  "; expected a regular file, for its folder may be a stranger's (cp -L copies what links lead to)");
}

FileReader FileReader::in_untrusted_folder(fs::path path) {
  return FileReader(std::move(path), O_NOFOLLOW | O_NONBLOCK);
}

FileReader::FileReader(FileReader&& other) noexcept : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

FileReader::~FileReader() {
  if (file_ >= 0) close(file_);
}

uint64_t FileReader::size() const {
  struct stat status = {};
  if (fstat(file_, &status) != 0) fail();
  return static_cast<uint64_t>(status.st_size);
}

size_t FileReader::read(char* bytes, size_t most) const {
  for (;;) {
    const ssize_t count = ::read(file_, bytes, most);
    if (count >= 0) return static_cast<size_t>(count);
    if (!may_try_again(file_, POLLIN)) fail();
  }
}

std::string FileReader::whole(uint64_t most) const {
  const uint64_t bytes = size();
  if (bytes > most) throw DataError(path_.string() + ": has " + std::to_string(bytes) + " bytes; expected at most " + std::to_string(most));
  std::string text(bytes, '\0');
  for (size_t done = 0; done < bytes;) {
    const size_t now = read(text.data() + done, bytes - done);
    if (now == 0) throw DataError(path_.string() + ": it became shorter while it was read; start again when nothing writes to it");
    done += now;
  }
  return text;
}

void FileReader::fail() const {
  fail_by(errno, path_.string() + ": cannot be read: ");
}

std::string read_file(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) throw DataError(path.string() + ": is a folder; expected a file");
  constexpr size_t kBytesAtATime = 1 << 16;
  const FileReader file(path);
  std::string bytes;
  for (size_t done = 0;;) {
    bytes.resize(done + kBytesAtATime);
    const size_t count = file.read(bytes.data() + done, kBytesAtATime);
    done += count;
    if (count > 0) continue;
    bytes.resize(done);
    return bytes;
  }
}

bool may_try_again(int file, short events) {
  if (errno == EINTR) return true;
  if (errno != EAGAIN) return false;
  pollfd wait = {.fd = file, .events = events, .revents = 0};
  return poll(&wait, 1, -1) >= 0 || errno == EINTR;
}

FileWriter::FileWriter(const fs::path& path, const fs::path& former) : name_(former.empty() ? path : former) {
  struct stat status = {};
  const bool has_former = !former.empty() && stat(former.c_str(), &status) == 0;
  const mode_t mode = has_former ? status.st_mode & 07777U : 0666;
  open(path, former.empty() ? O_TRUNC : O_EXCL, mode);  // in a folder that others write to, a name may have become a link of theirs
  if (has_former) fchmod(file_, mode);                  // whatever the umask is, where the file system knows permissions
}

FileWriter::FileWriter(const fs::path& path, Begin begin) : name_(path) {
  open(path, begin == Begin::kAtEnd ? O_APPEND : O_TRUNC, 0666);
}

void FileWriter::open(const fs::path& path, int how, mode_t mode) {
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | how;
  file_ = is_replaceable(path) ? uninterrupted([&] { return ::open(path.c_str(), flags, mode); }) : open_to_write_to(path);
  if (file_ < 0) fail_to_write(name_, 0);
}

FileWriter::~FileWriter() {
  if (file_ >= 0) close(file_);
}

void FileWriter::write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() >= kBytesPerWrite) flush();
  if (bytes.size() >= kBytesPerWrite)
    put(bytes);
  else
    buffer_ += bytes;
}

void FileWriter::flush() {
  put(buffer_);
  buffer_.clear();
}

void FileWriter::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_, bytes.data(), bytes.size());
    if (count < 0 && !may_try_again(file_, POLLOUT)) fail_to_write(name_, bytes.size());
    if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void FileWriter::finish() {
  put(buffer_);
  const int synced = uninterrupted([&] { return fsync(file_); });
  if (synced != 0 && errno != EINVAL && errno != EROFS) fail_to_write(name_, 0);  // devices and pipes have nothing to sync
  if (close(std::exchange(file_, -1)) != 0 && errno != EINTR) fail_to_write(name_, 0);
}

void fail_to_write(const fs::path& path, size_t bytes) {
  const int cause = errno;
  std::string message = path.string() + ": cannot be written: " + std::strerror(cause);
  if (cause == ENOSPC || cause == EDQUOT) {
    message += "; ";
    if (bytes > 0) message += std::to_string(bytes) + " bytes more are needed at once: ";
    message += "free some space";
  }
  if (cause == EFBIG) message += "; files may not be as large (ulimit -f, or the file system): raise the limit";
  if (cause == ELOOP || cause == ENAMETOOLONG) throw DataError(message);
  throw MachineError(message);
}

bool is_replaceable(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return !open_file_of(path) && (!fs::exists(status) || fs::is_regular_file(status) || fs::is_directory(status));
}

fs::path behind_links(const fs::path& path) {
  std::error_code error;
  fs::path target = path.has_filename() ? path : path.parent_path();  // a slash at its end would hide the link
  for (int i = 0; i < kMostLinks && fs::is_symlink(target, error); ++i) target = target.parent_path() / fs::read_symlink(target, error);
  return target;
}

int open_to_write_to(const fs::path& path) {
  if (const auto number = open_file_of(path)) return fcntl(*number, F_DUPFD_CLOEXEC, 0);
  return uninterrupted([&] { return open(path.c_str(), O_WRONLY | O_CLOEXEC); });
}

uint64_t free_disk_space(fs::path path) {
  std::error_code error;
  path = fs::absolute(path, error);
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  const fs::space_info space = fs::space(path, error);
  if (error) throw MachineError(path.string() + ": its free space cannot be asked for: " + error.message());
  return space.available;
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

fs::path folder_for_temporary_files() {
  std::error_code error;
  fs::path folder = fs::temp_directory_path(error);
  if (error) throw MachineError("there is no folder for temporary files (TMPDIR or /tmp): " + error.message());
  return folder;
}

UnnamedFile::UnnamedFile() {
  const fs::path folder = folder_for_temporary_files();
  constexpr mode_t kMine = 0600;
  file_ = uninterrupted([&] { return open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kMine); });
  if (file_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) file_ = memfd_create("lacuna", MFD_CLOEXEC);
  if (file_ < 0) throw MachineError("cannot make a temporary file in " + folder.string() + ": " + std::strerror(errno));
  path_ = fs::path("/proc") / std::to_string(getpid()) / "fd" / std::to_string(file_);
}

UnnamedFile::~UnnamedFile() {
  close(file_);
}

}  // namespace lacuna
