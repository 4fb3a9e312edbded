#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lacuna {

/// What a program that has ended left behind.
struct ProcessResult {
  int exit_code = 0;        ///< 128 + n if signal n ended it, as shells count
  std::string output = {};  ///< all of its stdout
  std::string errors = {};  ///< all of its stderr

  /// The last lines of `errors`, at most `count`, indented by two spaces: for an error message.
  std::string last_errors(int count) const;
};

/// An environment variable that a child sees changed. Without a value the child does not see it at all.
struct EnvironmentChange {
  std::string name;
  std::optional<std::string> value;
};

/// Runs a program and waits for its end. No shell: `command` is its argument list, command[0] is looked up on PATH unless it has a slash.
/// Its stdin is empty. It has a process group of its own, so that Ctrl-C reaches this program only, which then decides what becomes of the
/// run. Throws MachineError if it cannot be started.
ProcessResult run_process(const std::vector<std::string>& command, const std::vector<EnvironmentChange>& changes = {});

/// Where a shell would find the program: on PATH, or as it is if it has a slash. Nothing if there is no such executable file.
std::optional<std::filesystem::path> find_program(const std::string& name);

}  // namespace lacuna
