#pragma once

#include <string>

namespace lacuna {

/// Keeps a run folder for this process as long as it lives: two trainings would overwrite each other's checkpoints. The system lets go of
/// it however the process ends.
class RunLock {
 public:
  /// Makes the folder if it is not there. Throws MachineError if that fails, ConfigError if another process trains in it.
  explicit RunLock(const std::string& run);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace lacuna
