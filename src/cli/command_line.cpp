#include "cli/command_line.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <iostream>

#include "base/spelling.h"

namespace lacuna {

CommandLine::CommandLine(const std::string& description, const std::string& name) : CLI::App(description, name) {
  option_defaults()->always_capture_default();
  formatter_fn([](const CLI::App* app, const std::string&, CLI::AppFormatMode) { return help_text(*app); });
}

bool CommandLine::read(std::vector<std::string> arguments, const std::string& long_help) {
  if (arguments == std::vector<std::string>{kMarkdownHelp}) {
    std::cout << help_markdown(*this);
    return false;
  }
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    std::cout << help();
    return false;
  } catch (const CLI::CallForAllHelp&) {
    std::cout << long_help;
    return false;
  } catch (const CLI::ExtrasError& error) {
    fail_on_extras(error);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string said = error.what(), flag = said.substr(0, said.find(':'));
    const bool is_repeated = said.find("At Most") != std::string::npos;
    fail(is_repeated ? flag + " is given more than once; expected one value" : said);
  } catch (const CLI::ParseError& error) {
    fail(error.what());
  }
  return true;
}

void CommandLine::fail(const std::string& message) const {
  throw UsageError(message + "; see " + get_name() + " --help");
}

void CommandLine::fail_on_extras(const CLI::ExtrasError& error) const {
  const std::vector<std::string> words = remaining();
  const auto flag =
      std::find_if(words.begin(), words.end(), [](const std::string& word) { return word.starts_with("--") && word != "--"; });
  if (flag != words.end()) throw UsageError(unknown_flag_message(*this, flag->substr(0, flag->find('='))));
  fail(error.what());
}

CLI::Validator whole_number_from(int64_t lowest, int64_t highest) {
  const bool has_end = highest != INT64_MAX;
  const std::string expected = has_end ? fmt::format("from {} to {}", lowest, highest) : fmt::format("of at least {}", lowest);
  const auto check = [=](const std::string& text) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_read = error == std::errc() && end == text.data() + text.size();
    const bool is_octal = text.size() > 1 && text.front() == '0';  // to CLI11
    const bool holds = is_read && !is_octal && value >= lowest && value <= highest;
    return holds ? std::string() : "\"" + text + "\" is not a whole number " + expected;
  };
  return CLI::Validator(check, has_end ? fmt::format("{}-{}", lowest, highest) : fmt::format(">= {}", lowest), "");
}

CLI::Validator real_number_between(double low, double high) {
  const auto check = [=](const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool holds = error == std::errc() && end == text.data() + text.size() && value >= low && value <= high;
    return holds ? std::string() : fmt::format("\"{}\" is not a number from {:g} to {:g}", text, low, high);
  };
  return CLI::Validator(check, fmt::format("{:g}-{:g}", low, high), "");
}

std::vector<int64_t> number_ranges(const std::string& text, const std::string& flag, int64_t lowest, int64_t highest,
                                   const std::string& whose) {
  constexpr int64_t kMostNumbers = 1'000'000;  // of one range: a larger one is a slip
  const auto fail = [&] {
    const std::string limits = highest == INT64_MAX ? fmt::format("of at least {}", lowest) : fmt::format("from {} to {}", lowest, highest);
    throw UsageError(fmt::format("{} is \"{}\"; expected numbers and ranges {}, such as 1-3,7{}", flag, text, limits,
                                 whose.empty() ? "" : ", for " + whose));
  };
  const auto number = [&](const std::string& word) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) fail();
    return value;
  };
  if (text.empty() || text.ends_with(',')) fail();  // split() would not see what is missing behind it
  std::vector<int64_t> numbers;
  for (const std::string& part : CLI::detail::split(text, ',')) {
    const size_t dash = part.find('-', 1);
    const int64_t first = number(part.substr(0, dash)), last = dash == std::string::npos ? first : number(part.substr(dash + 1));
    if (first > last || first < lowest || last > highest || last - first >= kMostNumbers) fail();
    for (int64_t value = first; value <= last; ++value) numbers.push_back(value);
  }
  return numbers;
}

std::string unknown_flag_message(const CLI::App& app, const std::string& flag) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  return flag + " is not a flag; see " + app.get_name() + " --help" + did_you_mean(flag, known);
}

}  // namespace lacuna
