#include "base/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/system_error.h"

namespace lacuna {
namespace {

/// A mapped file, in plain memory: a signal handler may call only few functions.
struct MappedRange {
  std::atomic<uintptr_t> begin = 0;  // 0 = free, 1 = being filled in
  uintptr_t end = 0;
  size_t name_length = 0;
  char name[PATH_MAX] = {};
};
constexpr size_t kMostRanges = 64;  // of more files, the others have no name
MappedRange mapped_ranges[kMostRanges];

uintptr_t address_of(const void* place) {
  return reinterpret_cast<uintptr_t>(place);
}

void add_range(const char* data, size_t size, const std::string& name) {
  for (MappedRange& range : mapped_ranges) {
    uintptr_t is_free = 0;
    if (!range.begin.compare_exchange_strong(is_free, 1)) continue;
    range.end = address_of(data + size);
    range.name_length = name.copy(range.name, sizeof range.name);
    range.begin.store(address_of(data));
    return;
  }
}

void remove_range(const char* data) {
  for (MappedRange& range : mapped_ranges)
    if (range.begin.load() == address_of(data)) range.begin.store(0);
}

/// Ends the program where the address is of a mapped file. Any other SIGBUS comes again, with its default action.
void on_bus_error(int signal, siginfo_t* info, void*) {
  for (MappedRange& range : mapped_ranges) {
    const uintptr_t begin = range.begin.load(), place = address_of(info->si_addr);
    if (begin <= 1 || place < begin || place >= range.end) continue;
    char before[] = "lacuna: error: ", after[] = ": it was cut short while it was in use; start again when nothing writes to it\n";
    const iovec pieces[] = {{before, sizeof before - 1}, {range.name, range.name_length}, {after, sizeof after - 1}};
    [[maybe_unused]] const ssize_t written = writev(STDERR_FILENO, pieces, 3);
    _exit(1);
  }
  struct sigaction by_default = {};
  by_default.sa_handler = SIG_DFL;
  sigaction(signal, &by_default, nullptr);
}

}  // namespace

MappedFile::MappedFile(std::filesystem::path path, uint64_t most_read) : path_(std::move(path)) {
  const FileReader reader(path_);
  if (reader.size() > most_read) {
    map();
    return;
  }
  read_ = reader.whole(most_read);
  data_ = read_.data();
  size_ = read_.size();
}

MappedFile::~MappedFile() {
  if (file_ < 0) return;
  remove_range(data_);
  munmap(const_cast<char*>(data_), size_);
  close(file_);
}

void MappedFile::map() {
  file_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (file_ < 0 || fstat(file_, &status) != 0) fail_by(errno, path_.string() + ": cannot be read: ");
  size_ = static_cast<size_t>(status.st_size);
  written_ = status.st_mtim;
  void* const mapped = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) {
    const int cause = errno;
    close(file_);
    throw MachineError(path_.string() + ": cannot be mapped: " + std::strerror(cause));
  }
  data_ = static_cast<const char*>(mapped);
  add_range(data_, size_, printable(path_.string()));
}

void MappedFile::require_unchanged() const {
  struct stat status = {};
  if (file_ < 0) return;
  if (fstat(file_, &status) == 0 && static_cast<size_t>(status.st_size) == size_ && status.st_mtim.tv_sec == written_.tv_sec &&
      status.st_mtim.tv_nsec == written_.tv_nsec)
    return;
  fail_as_changed();
}

void MappedFile::fail_as_changed() const {
  throw MachineError(path_.string() + ": it was written to while it was in use; start again when nothing writes to it");
}

void report_cut_files() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace lacuna
