#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"

namespace lacuna {

/// Reads a verb's arguments with CLI11. False if --help was asked for: it has been printed, and the verb is to return 0.
/// Throws UsageError for whatever CLI11 does not accept, in place of CLI11's own exit codes.
inline bool parse_command_line(CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(app.get_name() + ": " + error.what() + "; see " + app.get_name() + " --help");
  }
  return true;
}

}  // namespace lacuna
