#pragma once

#include <chrono>
#include <string>

#include "base/file_lock.h"

namespace lacuna {

/// Locks a run folder, or an ablation's, against other processes for as long as the object lives.
class RunLock {
 public:
  /// Creates the folder if it does not exist, and waits for another process that holds the lock. Throws MachineError if
  /// the folder cannot be created, ConfigError if the other process takes longer than `patience`, and Interrupted.
  explicit RunLock(const std::string& run, std::chrono::duration<double> patience = {});

 private:
  FileLock lock_;
};

}  // namespace lacuna
