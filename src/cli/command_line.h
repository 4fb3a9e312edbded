#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace lacuna {

/// The flags of a verb. Defaults of all flags that are declared from variables are shown in its help.
class CommandLine : public CLI::App {
 public:
  /// `name` is the command: "lacuna train".
  CommandLine(const std::string& description, const std::string& name);

  /// Reads the words after the verb. False if a flag that prints and ends was given (--help): it has been printed, and the verb returns 0.
  /// Throws UsageError for whatever CLI11 does not accept. `long_help` is what the app's help-all flag prints, if it has one.
  bool read(std::vector<std::string> arguments, const std::string& long_help = "");

 private:
  [[noreturn]] void fail_on_extras(const CLI::ExtrasError& error) const;
  [[noreturn]] void fail(const std::string& message) const;
};

/// The word that stands for all arguments of a verb to print its section of the command reference, in Markdown.
inline constexpr char kMarkdownHelp[] = "--help-markdown";

/// Accepts a whole number from `lowest` to `highest`. (The message of CLI::PositiveNumber spells out the largest double.)
CLI::Validator whole_number_from(int64_t lowest, int64_t highest = INT64_MAX);
/// Accepts a number from `low` to `high`, both included, and so not NaN (which CLI::Range takes).
CLI::Validator real_number_between(double low, double high);

/// Returns the numbers of "1-3,7", in its order. Throws UsageError, which names the flag, unless each is from `lowest` to `highest`, and
/// each range rises; `whose` says, for the message, what has these limits.
std::vector<int64_t> number_ranges(const std::string& text, const std::string& flag, int64_t lowest, int64_t highest = INT64_MAX,
                                   const std::string& whose = "");

/// An error message for a flag that the verb does not have.
std::string unknown_flag_message(const CLI::App& app, const std::string& flag);

/// What --help prints: the description, each flag with its value, range, meaning and default, and the footer.
std::string help_text(const CLI::App& app);
/// The same as a section of a Markdown page, under a heading of the second level.
std::string help_markdown(const CLI::App& app);

/// Text as part of a Markdown table's cell or paragraph: signs with a meaning there, outside of `code`, are escaped.
std::string escaped_markdown(const std::string& text);

}  // namespace lacuna
