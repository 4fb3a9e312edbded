#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// The only place that starts other processes.
namespace lacuna {

/// How a program ended and what it wrote.
struct ProcessResult {
  int exit_code = 0;        ///< 128 + n if signal n ended it, as shells count
  int signal = 0;           ///< that n; 0 if it ended by itself
  std::string output = {};  ///< all of its stdout
  std::string errors = {};  ///< its stderr; the end of it if the program was supervised

  /// Returns the last lines of `errors` that are not blank, at most `count`, indented by two spaces: for an error message.
  std::string last_errors(int count) const;
};

/// An environment variable that a child process sees changed; without a value, the child does not see it at all.
struct EnvironmentChange {
  std::string name;
  std::optional<std::string> value;
};

/// How a program is run.
struct ProcessOptions {
  std::vector<EnvironmentChange> environment = {};
  /// For programs that run for long: what they write to stderr appears on ours at once, and a SIGINT, SIGTERM or SIGHUP that this process
  /// receives is forwarded to them once, so that they can end in order.
  bool is_supervised = false;
};

/// Runs a program and waits for its end. `command` is its argument list, read by no shell; command[0] is looked up on PATH unless it
/// contains a slash. The program's stdin is empty. It has a process group of its own, so that Ctrl-C reaches this process only, and gets
/// SIGTERM if this process dies. Throws MachineError if it cannot be started.
ProcessResult run_process(const std::vector<std::string>& command, const ProcessOptions& options = {});

/// How a program is started that runs beside this process.
struct StartOptions {
  std::vector<EnvironmentChange> environment = {};
  int passed_file = -1;        ///< a descriptor that the program gets under the same number
  std::vector<int> cpus = {};  ///< where it may run; empty = where this process may
  int memory_node = -1;        ///< NUMA node whose memory it takes first; -1 = any
};

/// Starts a program as run_process does, but with the stdout and stderr of this process, and returns its id at once. Who starts several
/// asks wait_for_end() for their ends. Throws MachineError if it cannot be started.
pid_t start_process(const std::vector<std::string>& command, const StartOptions& options = {});

/// The end of a program that start_process() started.
struct EndedProcess {
  pid_t id = 0;
  int exit_code = 0;  ///< 128 + n if signal n ended it
  int signal = 0;     ///< that n; 0 if it ended by itself
};

/// Waits for the end of one of the programs that start_process() started, at most this time.
std::optional<EndedProcess> wait_for_end(std::chrono::milliseconds timeout);

/// Returns where a shell would find the program: on PATH, or `name` itself if it contains a slash. Empty if there is no such executable.
std::optional<std::filesystem::path> find_program(const std::string& name);

/// Returns the word as it is written for a shell: in quotes where it would not be read as one word.
std::string shell_word(const std::string& word);

/// Runs `work` in a forked child and returns its result: its memory is freed when it ends, and a crash there is an error here. A DataError
/// thrown by `work` is thrown here too, any other exception as a MachineError. Throws MachineError if the child dies, and Interrupted if
/// SIGINT, SIGTERM or SIGHUP arrives meanwhile. `what` names the work in error messages ("training ...").
std::string run_in_child(const std::function<std::string()>& work, const std::string& what);

}  // namespace lacuna
