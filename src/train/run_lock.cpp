#include "train/run_lock.h"

#include <filesystem>

#include "base/error.h"
#include "config/run_files.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

fs::path lock_of(const std::string& run) {
  std::error_code error;
  fs::create_directories(run, error);
  if (error) throw MachineError("cannot make the run folder " + run + ": " + error.message());
  return fs::path(run) / run_files::kLock;
}

}  // namespace

RunLock::RunLock(const std::string& run, std::chrono::duration<double> patience) : lock_(lock_of(run)) {
  if (!lock_.take_within(patience, "waiting for another process that works in " + run))
    throw ConfigError(run + " is in use: another process trains in it, or makes an ablation. Wait for it, or set `run` to another folder");
}

}  // namespace lacuna
