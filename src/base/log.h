#pragma once

#include <spdlog/fmt/fmt.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace lacuna {

enum class LogLevel { kInfo, kWarning, kError, kOff };

/// Sets the lowest level that is written to stderr, with a time and, on a terminal without NO_COLOR, a color.
void set_log_level(LogLevel level);
/// Raises the lowest level that is written to stderr, whatever set_log_level says, earlier or later: for one of several processes that
/// would all say the same.
void set_least_log_level(LogLevel level);
/// Puts "[NAME] " before each message on stderr, that of the error which ends the program included.
void set_log_name(const std::string& name);
/// Returns "[NAME] ", or nothing where set_log_name() was not called.
const std::string& log_prefix();
/// Appends every line from now on to this file too, whatever its level, as long as `may_write` says yes. Zeros at its end, as of a loss of
/// power, are cut off. Throws MachineError if the file cannot be opened.
void log_to_file(
    const std::string& path, std::function<bool()> may_write = [] { return true; });
/// Returns when all lines of that file, if there is one, are on the disk. Throws MachineError.
void sync_log_file();
/// Writes the error that ends the program to that file alone, if there is one; `main` prints it to stderr.
void log_error_to_file(const std::string& text);
/// Returns the number of warnings so far, whatever the level of the log.
int64_t warnings_logged();
/// Returns the text with control characters (but for line breaks and tabs) and bytes that are not UTF-8 as \x1b: terminals obey them, and
/// what a message quotes may come from anywhere.
std::string printable(std::string_view text);
/// Writes one line, made printable, to stderr and to the log file.
void write_log_line(LogLevel level, const std::string& text);

template <class... Parts>
void log_info(fmt::format_string<Parts...> format, Parts&&... parts) {
  write_log_line(LogLevel::kInfo, fmt::format(format, std::forward<Parts>(parts)...));
}
template <class... Parts>
void log_warning(fmt::format_string<Parts...> format, Parts&&... parts) {
  write_log_line(LogLevel::kWarning, fmt::format(format, std::forward<Parts>(parts)...));
}

/// True if stderr is a terminal, on which a progress bar may be drawn.
bool stderr_is_terminal();

}  // namespace lacuna
