#include <sstream>
#include <vector>

#include "base/spelling.h"
#include "cli/command_line.h"

namespace lacuna {
namespace {

constexpr size_t kNameWidth = 30, kLineWidth = 110;

/// "-b, --beam-size"
std::string names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names.empty() ? option.get_name(/*positional=*/true) : join(names);
}

/// "N (0-1024)", "{word,subword}", "PATH"; empty for a flag without a value.
std::string value_of(const CLI::Option& option) {
  if (option.get_expected_max() == 0) return "";
  const std::string type = option.get_type_name();
  const size_t colon = type.find(':');
  std::string name = type.substr(0, colon);
  if (name == "INT" || name == "UINT") name = "N";
  if (name == "FLOAT") name = "X";
  if (colon == std::string::npos) return name;
  const std::string range = type.substr(colon + 1);
  return range.empty() ? name : range.front() == '{' ? range : name + " (" + range + ")";
}

/// The default as it would be written on a command line; empty if there is none, as of a flag that must be given.
std::string default_of(const CLI::Option& option) {
  std::string text = option.get_default_str();
  if (option.get_required() || option.get_expected_max() == 0 || text == "[]" || text == "{}" || text == "\"\"") return "";
  if (text.size() > 1 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  return text;
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  names.reserve(options.size());
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());  // a set of pointers has another order each time
  return join(names);
}

/// What is to be known of a flag beside its meaning: "required", its default, the flags that it goes with.
std::vector<std::string> facts_of(const CLI::Option& option) {
  std::vector<std::string> facts;
  if (option.get_required()) facts.emplace_back("required");
  if (const std::string text = default_of(option); !text.empty()) facts.push_back("default: " + text);
  if (!option.get_needs().empty()) facts.push_back("needs " + names_of(option.get_needs()));
  if (!option.get_excludes().empty()) facts.push_back("not with " + names_of(option.get_excludes()));
  return facts;
}

/// Words of `text` in lines of at most kLineWidth, all but the first indented by kNameWidth. Line breaks stay.
std::string wrapped(const std::string& text) {
  std::string result;
  size_t column = kNameWidth;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (column > kNameWidth && column + 1 + word.size() > kLineWidth) {
      result += "\n" + std::string(kNameWidth, ' ');
      column = kNameWidth;
    } else if (column > kNameWidth) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

std::string usage_of(const CLI::App& app) {
  std::string text = app.get_name() + " [FLAG ...]";
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional()) text += " " + option->get_name(/*positional=*/true) + (option->get_expected_max() > 1 ? " ..." : "");
  return text;
}

}  // namespace

std::string help_text(const CLI::App& app) {
  std::string text = app.get_description() + "\n\nUsage: " + usage_of(app) + "\n\n";
  for (const CLI::Option* option : app.get_options()) {
    std::string head = "  " + names_of(*option);
    if (const std::string value = value_of(*option); !value.empty()) head += " " + value;
    const std::string gap = head.size() + 2 > kNameWidth ? "\n" + std::string(kNameWidth, ' ') : std::string(kNameWidth - head.size(), ' ');
    const std::vector<std::string> facts = facts_of(*option);
    text += head + gap + wrapped(option->get_description() + (facts.empty() ? "" : " (" + join(facts, "; ") + ")")) + "\n";
  }
  return text + (app.get_footer().empty() ? "" : "\n" + app.get_footer() + "\n");
}

std::string help_markdown(const CLI::App& app) {
  std::string text = "## " + app.get_name() + "\n\n" + escaped_markdown(app.get_description()) + "\n\n```text\n" + usage_of(app) +
                     "\n```\n\n| Flag | Meaning | Default |\n| --- | --- | --- |\n";
  for (const CLI::Option* option : app.get_options()) {
    const std::string value = value_of(*option), usual = default_of(*option);
    std::vector<std::string> facts = facts_of(*option);
    std::erase_if(facts, [](const std::string& fact) { return fact.starts_with("default: "); });
    std::string names = "`" + names_of(*option) + (value.empty() ? "" : " " + value) + "`";
    text += "| " + names + " | " + escaped_markdown(option->get_description()) + (facts.empty() ? "" : " *(" + join(facts, "; ") + ")*") +
            " | " + (usual.empty() ? "" : "`" + usual + "`") + " |\n";
  }
  return text + "\n" + (app.get_footer().empty() ? "" : escaped_markdown(app.get_footer()) + "\n\n");
}

std::string escaped_markdown(const std::string& text) {
  std::string result;
  bool is_code = false;
  for (const char c : text) {
    if (c == '`') is_code = !is_code;
    if (c == '|' || (!is_code && (c == '<' || c == '*'))) result += '\\';
    result += c;
  }
  return result;
}

}  // namespace lacuna
