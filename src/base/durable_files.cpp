#include "base/durable_files.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <regex>

#include "base/error.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/system_error.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what, const fs::path& place, int error) {
  throw MachineError(what + " " + place.string() + ": " + std::strerror(error));
}

constexpr size_t kMachineDigits = 16;

/// Identifies the process number space: this host, and this container of it.
const std::string& this_machine() {
  static const std::string machine = [] {
    utsname host = {};
    uname(&host);
    std::error_code no_proc;
    return hash_of(std::string(host.nodename) + " " + fs::read_symlink("/proc/self/ns/pid", no_proc).string()).substr(0, kMachineDigits);
  }();
  return machine;
}

/// True if it was neither written nor renamed for that time.
bool is_untouched_for(const fs::path& place, std::chrono::seconds time) {
  struct stat status = {};
  return lstat(place.c_str(), &status) == 0 && std::time(nullptr) - status.st_ctime >= time.count();
}

constexpr char kTemporaryMark[] = ".lacuna-tmp.";  // of a file; MACHINE.PROCESS.NUMBER follows
std::atomic<uint64_t> next_temporary = 0;          // counts within this process

/// True if an ended process left the file or folder. It may have had the number of this one: then this one has not used the name yet.
bool is_left_temporary(const fs::path& file, const std::string& prefix) {
  const std::string name = file.filename().string();
  const size_t dot = name.rfind('.');
  if (!name.starts_with(prefix) || dot < prefix.size()) return false;
  const auto writer = WriterProcess::parse(std::string_view(name).substr(prefix.size(), dot - prefix.size()));
  uint64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, failed] = std::from_chars(name.data() + dot + 1, end, number);
  if (!writer || rest != end || failed != std::errc()) return false;
  return writer->is_this_process() ? number >= next_temporary : writer->is_gone(file);
}

bool is_mine(const fs::path& place) {
  struct stat status = {};
  return lstat(place.c_str(), &status) == 0 && status.st_uid == geteuid();
}

/// Returns a temporary name beside `path` that no other thread, process or machine uses, and removes what ended processes left there: of a
/// folder that all users share, what those of this user left.
fs::path temporary_beside(const fs::path& path, bool is_shared = false) {
  const std::string prefix = path.filename().string().append(kTemporaryMark);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path.has_parent_path() ? path.parent_path() : ".", error))
    if (is_left_temporary(entry.path(), prefix) && (!is_shared || is_mine(entry.path()))) fs::remove_all(entry.path(), error);
  fs::path temporary =
      path.string().append(kTemporaryMark).append(WriterProcess().name()).append(".").append(std::to_string(next_temporary++));
  unlink(temporary.c_str());  // a leftover in a folder that cannot be listed
  return temporary;
}

int rename_to(const fs::path& from, const fs::path& to) {
  return uninterrupted([&] { return rename(from.c_str(), to.c_str()); });
}

// Temporary names of folders and links are .<final name>.<mark>.<writer process>, beside the final one.
constexpr char kTemporary[] = "tmp";  ///< half-written, or being removed
constexpr char kReplaced[] = "old";   ///< stood at the final name until a moment ago

fs::path beside(const fs::path& place, const char* mark) {
  std::string name = ".";
  name.append(place.filename().string()).append(".").append(mark).append(".");
  return place.parent_path() / name.append(WriterProcess().name());
}

/// Removes what has a temporary name. What cannot be removed now (NFS, while its files are read) is a leftover for later.
void remove_temporary(const fs::path& temporary) {
  std::error_code ignored;
  fs::remove_all(temporary, ignored);
}

struct Leftover {
  std::string name, mark;  ///< name: the final one
};

/// True if a crashed process left it. That process may have had the number of this one, which stages one thing at a time.
bool is_leftover(const fs::path& place, std::chrono::seconds patience, Leftover& leftover) {
  static const std::regex kName(R"(\.(.+)\.(tmp|old)\.([^.]+\.[^.]+))");
  const std::string file = place.filename().string();
  std::smatch match;
  if (!std::regex_match(file, match, kName)) return false;
  leftover = {match[1], match[2]};
  const auto writer = WriterProcess::parse(match[3].str());
  return writer && (writer->is_this_process() || writer->is_gone(place, patience));
}

/// Absolute, without a slash at the end, so that it has a parent and a name.
fs::path normal(const fs::path& place) {
  fs::path path = fs::absolute(place).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace

WriterProcess::WriterProcess() : WriterProcess(this_machine(), getpid()) {}

std::optional<WriterProcess> WriterProcess::parse(std::string_view text) {
  const std::string_view machine = text.substr(0, kMachineDigits);
  if (text.size() <= kMachineDigits || text[kMachineDigits] != '.') return {};
  if (machine.find_first_not_of("0123456789abcdef") != std::string_view::npos) return {};
  const std::string_view digits = text.substr(kMachineDigits + 1);
  pid_t process = 0;
  const char* const end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, process).ptr != end || process <= 0) return {};
  return WriterProcess(machine, process);
}

bool WriterProcess::is_this_process() const {
  return process_ == getpid() && machine_ == this_machine();
}

bool WriterProcess::is_gone(const fs::path& made, std::chrono::seconds patience) const {
  return machine_ == this_machine() ? has_ended_here() : is_untouched_for(made, patience);
}

bool WriterProcess::has_ended_here() const {
  return machine_ == this_machine() && kill(process_, 0) != 0 && errno == ESRCH;
}

TemporaryFolder::TemporaryFolder() {
  const fs::path folder = folder_for_temporary_files();
  constexpr mode_t kMine = 0700;
  int failed = 0;
  do {
    path_ = temporary_beside(folder / "lacuna", /*is_shared=*/true);
    failed = mkdir(path_.c_str(), kMine);
  } while (failed != 0 && errno == EEXIST);
  if (failed != 0) fail("cannot make the temporary folder", path_, errno);
}

TemporaryFolder::~TemporaryFolder() {
  remove_temporary(path_);
}

FileReplacement::FileReplacement(fs::path path) : path_(std::move(path)), temporary_(temporary_beside(path_)), writer_(temporary_, path_) {}

FileReplacement::~FileReplacement() {
  if (!is_finished_) unlink(temporary_.c_str());
}

void FileReplacement::sync() {
  if (!is_synced_) writer_.finish();
  is_synced_ = true;
}

void FileReplacement::remove_former() const {
  if (unlink(path_.c_str()) != 0 && errno != ENOENT && errno != EBUSY) fail_to_write(path_, 0);  // EBUSY: a mount point
}

void FileReplacement::finish() {
  sync();
  if (rename_to(temporary_, path_) == 0) {
    is_finished_ = true;
  } else if (errno == EBUSY) {  // a mount point; the destructor removes the new file
    overwrite();
  } else {
    fail_to_write(path_, 0);
  }
  sync_folder_or_warn(path_.parent_path());
}

void FileReplacement::finish_as(const fs::path& name) {
  sync();
  if (rename(temporary_.c_str(), name.c_str()) != 0) fail_to_write(name, 0);
  is_finished_ = true;
  try_sync_folder(name.parent_path());
}

void FileReplacement::overwrite() {
  const MappedFile whole(temporary_);
  try {
    FileWriter over(path_);
    over.write({whole.data(), whole.size()});
    over.finish();
  } catch (const MachineError& error) {
    is_finished_ = true;  // keeps the new file: the old one is lost
    throw MachineError(std::string(error.what()).append("; all of it is in ").append(temporary_.string()));
  }
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  if (is_replaceable(path)) {
    FileReplacement file(path);
    file.writer().write(bytes);
    file.finish();
  } else {
    FileWriter file(path);
    file.write(bytes);
    file.finish();
  }
}

std::error_code try_sync_folder(const fs::path& folder) {
  const int file = uninterrupted([&] { return open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  int error = file < 0 || uninterrupted([&] { return fsync(file); }) != 0 ? errno : 0;
  if (file >= 0 && error == EINVAL) error = 0;  // a file system that needs no sync
  if (file >= 0) close(file);
  return {error, std::generic_category()};
}

void HashingFileWriter::write(std::string_view bytes) {
  hash_.add_piece(bytes);
  bytes_ += bytes.size();
  file_.write(bytes);
}

FileDigest HashingFileWriter::finish() {
  file_.finish();
  return {bytes_, hash_.text()};
}

FileDigest write_durably(const fs::path& file, std::string_view bytes) {
  HashingFileWriter writer(file);
  writer.write(bytes);
  return writer.finish();
}

void sync_folder(const fs::path& folder) {
  if (const std::error_code error = try_sync_folder(folder)) fail("cannot sync the folder", folder, error.value());
}

void sync_folder_or_warn(const fs::path& folder) {
  if (const std::error_code error = try_sync_folder(folder))
    log_warning("cannot sync the folder {}: {}. What was written there is whole, and may be gone after a loss of power",
                folder.empty() ? "." : folder.string(), error.message());
}

void sync_file(const fs::path& path) {
  const int file = uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  const bool is_synced = file >= 0 && (uninterrupted([&] { return fsync(file); }) == 0 || errno == EINVAL || errno == EROFS);
  const int error = errno;
  if (file >= 0) close(file);
  if (!is_synced) fail("cannot sync the file", path, error);
}

uint64_t drop_zeros_at_end(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return 0;
  const std::string text = read_file(path);
  const size_t end = text.find_last_not_of('\0') + 1;
  if (end == text.size()) return 0;
  if (uninterrupted([&] { return truncate(path.c_str(), static_cast<off_t>(end)); }) != 0) fail("cannot cut the end of", path, errno);
  return text.size() - end;
}

void replace_link(const fs::path& link, const std::string& target) {
  const fs::path place = normal(link), temporary = beside(place, kTemporary);
  unlink(temporary.c_str());
  if (symlink(target.c_str(), temporary.c_str()) != 0) fail("cannot make the link", temporary, errno);
  if (rename_to(temporary, place) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    fail("cannot replace the link", place, error);
  }
  sync_folder(place.parent_path());
}

void make_parent_of(const fs::path& place) {
  const fs::path parent = normal(place).parent_path();
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) fail("cannot make the folder", parent, error.value());
}

StagedFolder::StagedFolder(const fs::path& place) : place_(normal(place)), temporary_(beside(place_, kTemporary)) {
  remove_leftovers(place_.parent_path());
  std::error_code error;
  if (!fs::create_directory(temporary_, error)) fail("cannot make the folder", temporary_, error ? error.value() : EEXIST);
}

StagedFolder::~StagedFolder() {
  if (!committed_) remove_temporary(temporary_);
}

void StagedFolder::commit() {
  sync_folder(temporary_);
  const fs::path parent = place_.parent_path();
  if (uninterrupted([&] { return renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE); }) == 0) {
    committed_ = true;  // the former folder now has the temporary name
    sync_folder(parent);
    remove_temporary(temporary_);
    return;
  }
  // Nothing stood there, or the file system cannot exchange names: then the former folder steps aside for a moment, and `remove_leftovers`
  // brings it back should this process die in that moment.
  const fs::path former = beside(place_, kReplaced);
  const bool replaces = rename_to(place_, former) == 0;
  if (!replaces && errno != ENOENT) fail("cannot replace", place_, errno);
  if (rename_to(temporary_, place_) != 0) {
    const int error = errno;
    if (replaces) rename_to(former, place_);
    fail("cannot rename a folder to", place_, error);
  }
  committed_ = true;
  sync_folder(parent);
  if (replaces) remove_temporary(former);
}

void remove_folder(const fs::path& folder) {
  const fs::path place = normal(folder), temporary = beside(place, kTemporary);
  if (rename_to(place, temporary) != 0) fail("cannot remove", place, errno);
  remove_temporary(temporary);
}

void remove_leftovers(const fs::path& parent, std::chrono::seconds patience) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    Leftover leftover;
    if (!is_leftover(entry.path(), patience, leftover)) continue;
    const fs::path place = parent / leftover.name;
    if (leftover.mark == kReplaced && !fs::exists(place))
      fs::rename(entry.path(), place, error);
    else
      remove_temporary(entry.path());
  }
}

}  // namespace lacuna
