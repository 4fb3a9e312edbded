#pragma once

#include <string>

#include "base/error.h"

namespace lacuna {

/// Takes over SIGINT, SIGTERM and SIGHUP (the terminal was closed; not where the program was started without it, as by nohup): the first
/// one is only remembered, so that work can end in order (a checkpoint is written); the second one ends the process at once. A SIGHUP after
/// another of them does not count: a terminal and its shell send one each, and systemd, which ends a session, one right after SIGTERM.
void handle_interrupts();

/// Gives them back, in a child process that is to end by them. May be called between fork and exec.
void release_interrupts();

/// SIGPIPE and SIGXFSZ are ignored: a closed output, and a file larger than may be (ulimit -f), are errors of the write.
void ignore_signals_of_writes();

/// 0, or the one of these signals that has come. The exit code is then 128 + it.
int interrupt_signal();

/// Work that was given up because one of them came.
class Interrupted : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 128 + interrupt_signal(); }
};

/// Throws Interrupted if a signal has come. `what` says what was being done; it must leave nothing half done.
void stop_if_interrupted(const std::string& what);

}  // namespace lacuna
