// A library to preload into a program (LD_PRELOAD): it counts what the program does with the files below a folder, writes each operation
// to a log, and makes one of them fail. torture.py walks a run with it.
//
// FAULTS_PROGRAM  the program; other processes that inherit the environment are left alone
// FAULTS_FOLDER   the folder; absolute, without links
// FAULTS_LOG      gets a line for each operation: its number, its name, the file as seen from the folder, "fails" if it is made to. Numbers
//                 are counted over all processes of the program. A line with number 0 says what has been renamed
// FAULTS_COUNTER  a file of 24 zero bytes, which the processes count in
// FAULTS_AT       the operation that fails: its name, tab, its file as a pattern of fnmatch, tab, how often it has come there; none: no one
// FAULTS_EACH     in place of that one: operations by name, between commas. Each of them fails once, not where it is tried again
// FAULTS_KIND     how it fails: see kKinds

#include "faults.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <mutex>
#include <string>

namespace {

enum class Effect {
  kError,      ///< the operation fails with an error
  kErrorEver,  ///< so do all later ones that would take room (ENOSPC) or change anything (EROFS)
  kKill,       ///< SIGKILL before the operation
  kPower,      ///< the same, and what was written and not synced is gone
  kPause,      ///< SIGSTOP before the operation: the one who started the program changes something, and lets it go on
  kHalf,       ///< half of the bytes are written or read, as the system may do at any time
  kTorn        ///< half of the bytes are written, then SIGKILL
};

struct Kind {
  const char* name;
  Effect effect;
  int error;
};

constexpr Kind kKinds[] = {{"eio", Effect::kError, EIO},
                           {"enospc", Effect::kError, ENOSPC},
                           {"eintr", Effect::kError, EINTR},
                           {"emfile", Effect::kError, EMFILE},
                           {"einval", Effect::kError, EINVAL},
                           {"full", Effect::kErrorEver, ENOSPC},
                           {"readonly", Effect::kErrorEver, EROFS},
                           {"kill", Effect::kKill, 0},
                           {"power", Effect::kPower, 0},
                           {"pause", Effect::kPause, 0},
                           {"short", Effect::kHalf, 0},
                           {"torn", Effect::kTorn, 0}};

/// What an operation does to the disk.
enum class Needs { kNothing, kRoom, kChange };

/// How an operation is to go.
enum class Way { kOn, kFail, kHalf, kTorn };

/// What all processes of the program count.
struct Counters {
  std::atomic<long> operations = 0;
  std::atomic<long> times = 0;  // the operation of the settings has come to its file
  std::atomic<long> at = 0;     // the number of the one that failed
};

/// The operation that is to fail.
struct Place {
  std::string name, pattern;
  long time = 0;
};

struct Settings {
  const Kind* kind = nullptr;
  const char* folder = nullptr;
  size_t folder_length = 0;
  int log = -1;
  Counters* counters = nullptr;  // null in other programs, and until the library is ready
  const Place* place = nullptr;
  const char* each = nullptr;
};
Settings settings;

/// A file that has been written to: a second descriptor of it, and how many of its bytes are on the disk.
struct WrittenFile {
  int file;
  dev_t device;
  ino_t number;
  off_t synced;
};
constexpr int kMostWrittenFiles = 1000;
WrittenFile written_files[kMostWrittenFiles];
int num_written_files = 0;
std::mutex written_files_mutex;

[[noreturn]] void die() {
  for (;;) kill(getpid(), SIGKILL);
}

[[noreturn]] void stop_with(const char* problem, const char* what) {
  fprintf(stderr, "faults: %s %s\n", problem, what);
  _exit(70);
}

/// The path of an open file, or of the folder that relative paths begin at (AT_FDCWD).
bool path_of(int file, char (&path)[PATH_MAX]) {
  char link[64];
  snprintf(link, sizeof link, file == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  path[std::max<ssize_t>(length, 0)] = '\0';
  return length > 0;
}

/// `path` as seen from the folder of the settings; null for others.
const char* in_folder(const char* path) {
  if (strncmp(path, settings.folder, settings.folder_length) != 0 || path[settings.folder_length] != '/') return nullptr;
  return path + settings.folder_length + 1;
}

/// The same for a path that begins at the open folder `from` if it is relative; it is put together in `whole`.
const char* in_folder(int from, const char* path, char (&whole)[PATH_MAX]) {
  if (path == nullptr) return nullptr;
  if (path[0] == '/') return in_folder(path);
  if (!path_of(from, whole)) return nullptr;
  const size_t length = strlen(whole);
  snprintf(whole + length, sizeof whole - length, "/%s", path);
  return in_folder(whole);
}

void write_log(long number, const char* name, const char* path, const char* fate) {
  char line[PATH_MAX + 64];
  const int length = snprintf(line, sizeof line, "%ld\t%s\t%s\t%s\n", number, name, path, fate);
  if (length > 0) syscall(SYS_write, settings.log, line, std::min<size_t>(static_cast<size_t>(length), sizeof line - 1));
}

/// Cuts every file that this process has written to what it has synced.
void lose_power() {
  const std::lock_guard lock(written_files_mutex);
  for (int i = 0; i < num_written_files; ++i) syscall(SYS_ftruncate, written_files[i].file, written_files[i].synced);
}

/// Notes that bytes are about to be written, or have been synced.
void note(int file, bool is_synced) {
  if (settings.kind == nullptr || settings.kind->effect != Effect::kPower) return;
  struct stat status = {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return;
  const std::lock_guard lock(written_files_mutex);
  int i = 0;
  while (i < num_written_files && (written_files[i].device != status.st_dev || written_files[i].number != status.st_ino)) ++i;
  if (i == kMostWrittenFiles) stop_with("too many files for", "kind power");
  if (i == num_written_files) {
    if (is_synced) return;
    const int again = fcntl(file, F_DUPFD_CLOEXEC, 0);
    written_files[num_written_files++] = {again, status.st_dev, status.st_ino, status.st_size};
  } else if (is_synced) {
    written_files[i].synced = status.st_size;
  }
}

/// True if operations of the name are to fail, and this thread does not try again what has failed before.
bool is_one_of_each(const char* name, const char* path) {
  static thread_local std::string failed;
  std::string names = ",", word = ",";
  names.append(settings.each).append(",");
  word.append(name).append(",");
  if (names.find(word) == std::string::npos) return false;
  std::string operation = word + path;
  if (operation == failed) operation.clear();
  failed = operation;
  return !failed.empty();
}

/// True if the operation is to fail.
bool is_to_fail(long number, const char* name, const char* path, Needs needs) {
  if (settings.each != nullptr) return is_one_of_each(name, path);
  const Place* const place = settings.place;
  if (place == nullptr) return false;
  if (place->name == name && fnmatch(place->pattern.c_str(), path, FNM_PATHNAME) == 0 && ++settings.counters->times == place->time)
    settings.counters->at = number;
  const long at = settings.counters->at;
  if (at == 0 || number < at) return false;
  if (settings.kind->effect != Effect::kErrorEver) return number == at;
  return needs == Needs::kRoom || (settings.kind->error != ENOSPC && needs == Needs::kChange);
}

/// Counts an operation on `path` (seen from the folder) and says how it goes. Sets errno where it fails.
Way way_of(const char* name, const char* path, Needs needs) {
  if (settings.counters == nullptr || path == nullptr) return Way::kOn;
  const int former = errno;
  const long number = ++settings.counters->operations;
  const bool is_failing = is_to_fail(number, name, path, needs);
  write_log(number, name, path, is_failing ? "fails" : "");
  errno = former;
  if (!is_failing) return Way::kOn;
  const Kind& kind = *settings.kind;
  switch (kind.effect) {
    case Effect::kPower:
      lose_power();
      [[fallthrough]];
    case Effect::kKill:
      die();
    case Effect::kPause:
      syscall(SYS_tgkill, getpid(), gettid(), SIGSTOP);  // this thread stops at once
      return Way::kOn;
    case Effect::kHalf:
      return Way::kHalf;
    case Effect::kTorn:
      return Way::kTorn;
    case Effect::kError:
    case Effect::kErrorEver:
      break;
  }
  errno = kind.error;
  return Way::kFail;
}

Way way_of_path(const char* name, int from, const char* path, Needs needs) {
  if (settings.counters == nullptr) return Way::kOn;
  char whole[PATH_MAX];
  return way_of(name, in_folder(from, path, whole), needs);
}

Way way_of_file(const char* name, int file, Needs needs) {
  if (settings.counters == nullptr || file <= STDERR_FILENO) return Way::kOn;
  char path[PATH_MAX];
  return path_of(file, path) ? way_of(name, in_folder(path), needs) : Way::kOn;
}

bool fails(const char* name, int from, const char* path, Needs needs) {
  return way_of_path(name, from, path, needs) == Way::kFail;
}

/// Writes to the log what stands under a new name, as number 0.
void note_renamed(int folder, const char* to) {
  char whole[PATH_MAX];
  const char* const path = settings.counters == nullptr ? nullptr : in_folder(folder, to, whole);
  if (path != nullptr) write_log(0, "renamed", path, "");
}

/// Opens a file; the numbers of flags are those of openat.
int open_file(int from, const char* path, int flags, mode_t mode) {
  const bool reads = (flags & O_ACCMODE) == O_RDONLY && (flags & O_CREAT) == 0;
  if (fails(reads ? "look" : "open", from, path, reads ? Needs::kNothing : Needs::kRoom)) return -1;
  return static_cast<int>(syscall(SYS_openat, from, path, flags, mode));
}

/// The mode that follows the flags of open, where there is one.
mode_t mode_of(int flags, va_list rest) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
}

/// Passes on a read or write of `count` bytes, or half of it.
template <class Call>
ssize_t transfer(const char* name, int file, size_t count, const Call& call) {
  const bool writes = name[0] == 'w';
  const Way way = way_of_file(name, file, writes ? Needs::kRoom : Needs::kNothing);
  if (writes) note(file, /*is_synced=*/false);
  if (way == Way::kFail) return -1;
  const ssize_t done = call(way == Way::kHalf || way == Way::kTorn ? (count + 1) / 2 : count);
  if (way == Way::kTorn) die();
  return done;
}

template <class Function>
Function* real(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) stop_with("there is no function", name);
  return reinterpret_cast<Function*>(found);
}

FILE* open_stream(const char* name, const char* path, const char* mode) {
  const bool reads = mode[0] == 'r' && strchr(mode, '+') == nullptr;
  if (fails(reads ? "look" : "open", AT_FDCWD, path, reads ? Needs::kNothing : Needs::kRoom)) return nullptr;
  return real<FILE*(const char*, const char*)>(name)(path, mode);
}

int sync_file(int file, long call) {
  if (way_of_file("fsync", file, Needs::kNothing) == Way::kFail) return -1;
  const int failed = static_cast<int>(syscall(call, file));
  if (failed == 0) note(file, /*is_synced=*/true);
  return failed;
}

const char* setting(const char* name) {
  const char* const value = getenv(name);
  if (value == nullptr) stop_with("the environment lacks", name);
  return value;
}

/// Takes name, pattern and time apart.
const Place* place_of(const std::string& text) {
  const size_t first = text.find('\t'), second = text.find('\t', first + 1);
  if (second == std::string::npos) stop_with("this is no operation:", text.c_str());
  return new Place{text.substr(0, first), text.substr(first + 1, second - first - 1), atol(text.c_str() + second + 1)};
}

void read_kind() {
  const char* const at = getenv("FAULTS_AT");
  if (at != nullptr) settings.place = place_of(at);
  settings.each = getenv("FAULTS_EACH");
  if (at == nullptr && settings.each == nullptr) return;
  const char* const name = setting("FAULTS_KIND");
  for (const Kind& kind : kKinds)
    if (strcmp(kind.name, name) == 0) settings.kind = &kind;
  if (settings.kind == nullptr) stop_with("there is no kind", name);
}

/// A server's processes read the settings that each is started with.
__attribute__((constructor)) void start() {
  if (getenv("FAULTS_SERVER") == nullptr) read_fault_settings();
}

}  // namespace

void read_fault_settings() {
  const char* const program = getenv("FAULTS_PROGRAM");
  char own[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
  if (program == nullptr || length <= 0) return;
  own[length] = '\0';
  if (strcmp(own, program) != 0) return;
  settings.folder = setting("FAULTS_FOLDER");
  settings.folder_length = strlen(settings.folder);
  read_kind();
  settings.log = static_cast<int>(syscall(SYS_openat, AT_FDCWD, setting("FAULTS_LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  const long file = syscall(SYS_openat, AT_FDCWD, setting("FAULTS_COUNTER"), O_RDWR | O_CLOEXEC, 0);
  void* const shared = mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED, static_cast<int>(file), 0);
  if (settings.log < 0 || shared == MAP_FAILED) stop_with("cannot open", "FAULTS_LOG or FAULTS_COUNTER");
  syscall(SYS_close, file);
  settings.counters = static_cast<Counters*>(shared);
}

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the system's
extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_file(AT_FDCWD, path, flags, mode);
}

int openat(int from, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_file(from, path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_file(AT_FDCWD, path, flags, mode);
}

int openat64(int from, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_file(from, path, flags, mode);
}

int creat(const char* path, mode_t mode) {
  return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

FILE* fopen(const char* path, const char* mode) {
  return open_stream("fopen", path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  return open_stream("fopen64", path, mode);
}

/// What a stream has gathered is written: the log's lines.
int fflush(FILE* stream) {
  if (stream != nullptr && way_of_file("write line", fileno(stream), Needs::kRoom) == Way::kFail) return EOF;
  return real<int(FILE*)>("fflush")(stream);
}

ssize_t read(int file, void* bytes, size_t count) {
  return transfer("read", file, count, [&](size_t part) { return syscall(SYS_read, file, bytes, part); });
}

ssize_t pread(int file, void* bytes, size_t count, off_t place) {
  return transfer("read", file, count, [&](size_t part) { return syscall(SYS_pread64, file, bytes, part, place); });
}

ssize_t pread64(int file, void* bytes, size_t count, off64_t place) {
  return pread(file, bytes, count, place);
}

ssize_t write(int file, const void* bytes, size_t count) {
  return transfer("write", file, count, [&](size_t part) { return syscall(SYS_write, file, bytes, part); });
}

ssize_t pwrite(int file, const void* bytes, size_t count, off_t place) {
  return transfer("write", file, count, [&](size_t part) { return syscall(SYS_pwrite64, file, bytes, part, place); });
}

ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t place) {
  return pwrite(file, bytes, count, place);
}

/// Half of it is half of the first piece that is not empty.
ssize_t writev(int file, const iovec* pieces, int number) {
  const iovec* const end = pieces + number;
  const iovec* const first = std::find_if(pieces, end, [](const iovec& piece) { return piece.iov_len > 0; });
  if (first == end) return syscall(SYS_writev, file, pieces, number);
  return transfer("write", file, first->iov_len, [&](size_t part) {
    return part < first->iov_len ? syscall(SYS_write, file, first->iov_base, part) : syscall(SYS_writev, file, pieces, number);
  });
}

int fsync(int file) {
  return sync_file(file, SYS_fsync);
}

int fdatasync(int file) {
  return sync_file(file, SYS_fdatasync);
}

int ftruncate(int file, off_t size) noexcept {
  if (way_of_file("truncate", file, Needs::kChange) == Way::kFail) return -1;
  return static_cast<int>(syscall(SYS_ftruncate, file, size));
}

int ftruncate64(int file, off64_t size) noexcept {
  return ftruncate(file, size);
}

int truncate(const char* path, off_t size) noexcept {
  if (fails("truncate", AT_FDCWD, path, Needs::kChange)) return -1;
  return static_cast<int>(syscall(SYS_truncate, path, size));
}

int truncate64(const char* path, off64_t size) noexcept {
  return truncate(path, size);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  if (fails((flags & RENAME_EXCHANGE) != 0 ? "exchange" : "rename", to_folder, to, Needs::kChange)) return -1;
  const int failed = static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
  if (failed == 0) note_renamed(to_folder, to);
  return failed;
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return renameat2(from_folder, from, to_folder, to, 0);
}

int rename(const char* from, const char* to) noexcept {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlinkat(int from, const char* path, int flags) noexcept {
  if (fails((flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink", from, path, Needs::kChange)) return -1;
  return static_cast<int>(syscall(SYS_unlinkat, from, path, flags));
}

int unlink(const char* path) noexcept {
  return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char* path) noexcept {
  return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

/// As the C library's: a folder is tried where unlink says that it is one.
int remove(const char* path) noexcept {
  const int failed = unlinkat(AT_FDCWD, path, 0);
  return failed != 0 && errno == EISDIR ? static_cast<int>(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR)) : failed;
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  if (fails("link", to_folder, to, Needs::kRoom)) return -1;
  return static_cast<int>(syscall(SYS_linkat, from_folder, from, to_folder, to, flags));
}

int link(const char* from, const char* to) noexcept {
  return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int symlinkat(const char* target, int folder, const char* path) noexcept {
  if (fails("symlink", folder, path, Needs::kRoom)) return -1;
  return static_cast<int>(syscall(SYS_symlinkat, target, folder, path));
}

int symlink(const char* target, const char* path) noexcept {
  return symlinkat(target, AT_FDCWD, path);
}

int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  if (fails("mkdir", folder, path, Needs::kRoom)) return -1;
  return static_cast<int>(syscall(SYS_mkdirat, folder, path, mode));
}

int mkdir(const char* path, mode_t mode) noexcept {
  return mkdirat(AT_FDCWD, path, mode);
}

char* mkdtemp(char* name) noexcept {
  if (fails("mkdir", AT_FDCWD, name, Needs::kRoom)) return nullptr;
  return real<char*(char*)>("mkdtemp")(name);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
