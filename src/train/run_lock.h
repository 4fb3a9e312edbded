#pragma once

#include <chrono>
#include <string>

#include "base/file_lock.h"

namespace lacuna {

/// Keeps a run folder, or an ablation's, for this process as long as it lives: two would overwrite each other's checkpoints.
class RunLock {
 public:
  /// Makes the folder if it is not there, and waits for another process that works in it. Throws MachineError if the folder cannot be made,
  /// ConfigError if the other process takes longer than `patience`, Interrupted.
  explicit RunLock(const std::string& run, std::chrono::duration<double> patience = {});

 private:
  FileLock lock_;
};

}  // namespace lacuna
