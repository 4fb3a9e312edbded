#include "system_calls.h"

#include <fcntl.h>
#include <stdio.h>

#include <cerrno>

namespace lacuna {
namespace {

WatchedCalls* watcher = nullptr;
std::filesystem::path watched_folder;

/// As seen from the folder; empty for what is not in it.
std::string name_in_folder(const std::filesystem::path& path) {
  const std::string name = path.lexically_relative(watched_folder).string();
  return name.starts_with("..") ? "" : name;
}

/// False, and errno, if the call is to fail.
bool may_go_on(const std::string& what, const std::filesystem::path& path, const std::filesystem::path& other = {}) {
  if (watcher == nullptr || name_in_folder(path).empty()) return true;
  std::string call = what + " " + name_in_folder(path);
  if (!other.empty()) call.append(" ").append(name_in_folder(other));
  watcher->calls.push_back(call);
  const int error = watcher->error(call);
  if (error != 0) errno = error;
  return error == 0;
}

}  // namespace

WatchedCalls::WatchedCalls(const std::filesystem::path& folder) {
  watched_folder = folder;
  watcher = this;
}

WatchedCalls::~WatchedCalls() {
  watcher = nullptr;
}

}  // namespace lacuna

extern "C" {

int __real_fsync(int file);
int __real_rename(const char* from, const char* to);
int __real_unlink(const char* file);
int __real_renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags);

int __wrap_fsync(int file) {
  std::error_code no_proc;
  const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file), no_proc);
  return lacuna::may_go_on("fsync", path) ? __real_fsync(file) : -1;
}

int __wrap_rename(const char* from, const char* to) {
  return lacuna::may_go_on("rename", from, to) ? __real_rename(from, to) : -1;
}

int __wrap_unlink(const char* file) {
  if (std::filesystem::exists(std::filesystem::symlink_status(file))) lacuna::may_go_on("unlink", file);  // noted, and never fails
  return __real_unlink(file);
}

int __wrap_renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  const bool exchanges = flags == RENAME_EXCHANGE;
  return lacuna::may_go_on(exchanges ? "exchange" : "rename", from, to) ? __real_renameat2(from_folder, from, to_folder, to, flags) : -1;
}
}
