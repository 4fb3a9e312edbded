#pragma once

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/spelling.h"

namespace lacuna {

/// A check for flags: a whole number of `lowest` to `highest`. (The message of CLI::PositiveNumber spells out the largest double.)
inline CLI::Validator whole_number_from(int64_t lowest, int64_t highest = INT64_MAX) {
  const std::string bound = highest == INT64_MAX ? "" : ", at most " + std::to_string(highest);
  const std::string expected = "at least " + std::to_string(lowest) + bound;
  const auto check = [=](const std::string& text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_read = error == std::errc() && end == text.data() + text.size();
    const bool is_octal = text.size() > 1 && text.front() == '0';  // to CLI11
    const bool holds = is_read && !is_octal && value >= lowest && value <= highest;
    return holds ? std::string() : "\"" + text + "\" is not a whole number of " + expected;
  };
  return CLI::Validator(check, expected, "");
}

/// A check for flags: a number from `low` to `high`, both included, and so not NaN (which CLI::Range takes).
inline CLI::Validator real_number_between(double low, double high) {
  const std::string expected = fmt::format("from {:g} to {:g}", low, high);
  const auto check = [=](const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool holds = error == std::errc() && end == text.data() + text.size() && value >= low && value <= high;
    return holds ? std::string() : "\"" + text + "\" is not a number " + expected;
  };
  return CLI::Validator(check, expected, "");
}

/// What to say of a flag that the verb does not have.
inline std::string trouble_of_flag(const CLI::App& app, const std::string& flag) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  return flag + " is not a flag; see " + app.get_name() + " --help" + did_you_mean(flag, known);
}

/// Reads a verb's arguments with CLI11. False if --help was asked for: it has been printed, and the verb is to return 0.
/// Throws UsageError for whatever CLI11 does not accept, in place of CLI11's own exit codes. `long_help` is what the app's help-all flag
/// prints, if it has one.
inline bool parse_command_line(CLI::App& app, std::vector<std::string> arguments, const std::string& long_help = "") {
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return false;
  } catch (const CLI::CallForAllHelp&) {
    std::cout << long_help;
    return false;
  } catch (const CLI::ExtrasError& error) {
    const std::vector<std::string> words = app.remaining();
    const auto flag =
        std::find_if(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("--") && word != "--"; });
    if (flag != words.end()) throw UsageError(trouble_of_flag(app, flag->substr(0, flag->find('='))));
    throw UsageError(std::string(error.what()) + "; see " + app.get_name() + " --help");
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string said = error.what(), flag = said.substr(0, said.find(':'));
    const bool is_repeated = said.find("At Most") != std::string::npos;
    throw UsageError((is_repeated ? flag + " is given more than once; expected one value" : said) + "; see " + app.get_name() + " --help");
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + "; see " + app.get_name() + " --help");
  }
  return true;
}

}  // namespace lacuna
