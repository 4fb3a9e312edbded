#include "train/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace lacuna {

namespace fs = std::filesystem;

RunLock::RunLock(const std::string& run) {
  std::error_code error;
  fs::create_directories(run, error);
  if (error) throw MachineError("cannot make the run folder " + run + ": " + error.message());
  const fs::path file = fs::path(run) / ".lock";
  descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) throw MachineError("cannot write to the run folder " + run + ": " + std::strerror(errno));
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;  // a file system without locks is not refused
  close(descriptor_);
  throw ConfigError(run + " is in use: another process trains in it. Wait for it, or set `run` to another folder");
}

RunLock::~RunLock() {
  close(descriptor_);
}

}  // namespace lacuna
