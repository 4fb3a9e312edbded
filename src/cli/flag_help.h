#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lacuna {

/// What --help prints: the description, each flag with its value, range, meaning and default, and the footer.
std::string help_text(const CLI::App& app);
/// The same as a section of a Markdown page, under a heading of the second level.
std::string help_markdown(const CLI::App& app);

/// Text as part of a Markdown table's cell or paragraph: signs with a meaning there, outside of `code`, are escaped.
std::string escaped_markdown(const std::string& text);

}  // namespace lacuna
