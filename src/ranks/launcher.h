#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace lacuna {

/// The processes of one run that are started on this machine.
struct Launch {
  std::vector<std::string> command = {};  ///< program and arguments of each process
  int ranks = 1;                          ///< processes on this machine, and on each other one
  int machines = 1, machine = 0;          ///< how many machines, and which of them this is
  std::string address = "127.0.0.1";      ///< of machine 0
  uint16_t port = 0;                      ///< there; 0 = one that the system chooses, for a single machine
  int restarts = 0;                       ///< how often all are started again after one was lost
  bool binds = false;                     ///< to NUMA nodes, in equal shares
  std::chrono::seconds patience{30};      ///< for the others to end after the first one; then they are killed
};

/// Starts the processes, tells each its place (place.h), forwards SIGINT, SIGTERM or SIGHUP to them once, and returns, when all have ended,
/// the exit code of the one at fault: 128 + n if signal n has ended it. One that has left with 75 (LostRankError), because it lost another,
/// is at fault only where all others have, too. None is left behind, whatever ends this process. Throws MachineError if they cannot be
/// started. REQUIRES: handle_interrupts() was called.
int launch(const Launch& launch);

}  // namespace lacuna
