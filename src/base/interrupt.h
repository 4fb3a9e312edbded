#pragma once

#include <string>

#include "base/error.h"

namespace lacuna {

/// Handles SIGINT, SIGTERM and SIGHUP (unless SIGHUP is ignored, as under nohup): the first one is only remembered, so that work can end in
/// order (a checkpoint is written); the second one ends the process at once. A SIGHUP after another signal is ignored: a terminal and its
/// shell send one each, and systemd sends one right after SIGTERM.
void handle_interrupts();

/// Makes a second signal within 3 s of the first count as the same one: where several processes serve one run, their launcher and the
/// shell both send it to each.
void take_repeated_signals_as_one();

/// Makes this process go on as though it had received the signal, if it has received none: another process of its run has.
void adopt_interrupt(int signal);

/// Makes SIGTERM, if it comes first, end nothing but reading: what was read is answered. Any of the signals then wakes up who waits for
/// input. REQUIRES: handle_interrupts() was called.
void let_sigterm_end_reading();

/// Waits until `file`, which errors call `name`, can be read. Throws Interrupted if a signal has ended reading. Does nothing where
/// let_sigterm_end_reading() was not called.
void wait_to_read(int file, const std::string& name);

/// Restores the default action of these signals, for a child process. May be called between fork and exec.
void release_interrupts();

/// Ignores SIGPIPE and SIGXFSZ: a closed output and a file beyond the size limit (ulimit -f) become errors of the write.
void ignore_write_signals();

/// Returns the signal that was received (the exit code is then 128 + it), or 0.
int interrupt_signal();

/// Work that was given up because one of these signals was received.
class Interrupted : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return 128 + interrupt_signal(); }
};

/// Throws Interrupted if a signal was received, and not one that only ends reading. `what` says what was being done; it must leave nothing
/// half done.
void stop_if_interrupted(const std::string& what);

}  // namespace lacuna
