#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"

namespace lacuna {

/// A check for flags: a whole number of `lowest` or more. (The message of CLI::PositiveNumber spells out the largest double.)
inline CLI::Validator whole_number_from(int64_t lowest) {
  const std::string expected = "at least " + std::to_string(lowest);
  const auto check = [=](const std::string& text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool holds = error == std::errc() && end == text.data() + text.size() && value >= lowest;
    return holds ? std::string() : "\"" + text + "\" is not a whole number of " + expected;
  };
  return CLI::Validator(check, expected, "");
}

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
    throw UsageError(std::string(error.what()) + "; see " + app.get_name() + " --help");
  }
  return true;
}

}  // namespace lacuna
