#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/system_error.h"

namespace lacuna {
namespace {

/// Opens the file for writing if possible, which NFS requires for a lock.
int open_lock(const std::filesystem::path& file) {
  const int both = uninterrupted([&] { return open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); });
  if (both >= 0 || errno != EACCES) return both;
  const int found = uninterrupted([&] { return open(file.c_str(), O_RDONLY | O_CLOEXEC); });
  if (found < 0) errno = EACCES;  // why the file could not be created, not that it is missing
  return found;
}

}  // namespace

FileLock::FileLock(std::filesystem::path file) : path_(std::move(file)), file_(open_lock(path_)) {
  if (file_ < 0) throw MachineError(path_.parent_path().string() + ": cannot be written: " + std::strerror(errno));
}

FileLock::~FileLock() {
  close(file_);
}

bool FileLock::try_take() {
  is_held_ = uninterrupted([&] { return flock(file_, LOCK_EX | LOCK_NB); }) == 0;
  return is_held_ || errno != EWOULDBLOCK;
}

bool FileLock::is_in_place() const {
  struct stat held = {}, found = {};
  return fstat(file_, &held) == 0 && stat(path_.c_str(), &found) == 0 && held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

void FileLock::write(const std::string& text) const {
  const bool is_writable = (fcntl(file_, F_GETFL) & O_ACCMODE) == O_RDWR;
  if (!is_writable) return;
  const auto require = [&](bool succeeds) {
    if (!succeeds) throw MachineError(path_.string() + ": cannot be written: " + std::strerror(errno));
  };
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = uninterrupted([&] { return pwrite(file_, text.data() + done, text.size() - done, static_cast<off_t>(done)); });
    require(written > 0);
    done += static_cast<size_t>(written);
  }
  require(uninterrupted([&] { return ftruncate(file_, static_cast<off_t>(text.size())); }) == 0);
}

std::string FileLock::read() const {
  std::ifstream file(path_, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool FileLock::take_within(std::chrono::duration<double> patience, const std::string& what) {
  constexpr auto kPause = std::chrono::milliseconds(100);
  const auto start = std::chrono::steady_clock::now();
  while (!try_take()) {  // blocking in flock would ignore an interrupt
    stop_if_interrupted(what);
    if (std::chrono::steady_clock::now() - start > patience) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace lacuna
