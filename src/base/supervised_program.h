#pragma once

#include <string>
#include <vector>

namespace lacuna {

/// How a supervised program ended.
struct ProgramEnd {
  int exit_code = 0;        ///< 128 + n if signal n ended it, as shells count
  int signal = 0;           ///< that n; 0 if it ended by itself
  std::string output;       ///< all of its stdout
  std::string last_errors;  ///< the end of its stderr
};

/// Runs a long program to its end: `command` is its argument list, command[0] its path; no shell, its stdin is empty. What it writes to
/// stderr comes out on ours at once if `shows_errors`.
///
/// It runs in its own process group. SIGINT, SIGTERM and SIGHUP to this process are forwarded to it once, so that it can end in order; it
/// gets SIGTERM if this process dies. Throws MachineError if it cannot be started.
ProgramEnd run_supervised(const std::vector<std::string>& command, bool shows_errors);

}  // namespace lacuna
