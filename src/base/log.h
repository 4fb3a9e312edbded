#pragma once

#include <spdlog/fmt/fmt.h>

#include <string>
#include <utility>

namespace lacuna {

enum class LogLevel { kInfo, kWarning, kError, kOff };

/// Log lines go to stderr, with a time and, on a terminal where NO_COLOR is not set, colour. stdout is for results alone.
void set_log_level(LogLevel level);
/// Every line from now on is appended to this file too, whatever the level of stderr. Throws MachineError if it cannot be opened.
void log_to_file(const std::string& path);
/// To that file alone, if there is one: why the program ends, which stderr is told in its own way.
void log_error_to_file(const std::string& text);
void write_log_line(LogLevel level, const std::string& text);

template <class... Parts>
void log_info(fmt::format_string<Parts...> format, Parts&&... parts) {
  write_log_line(LogLevel::kInfo, fmt::format(format, std::forward<Parts>(parts)...));
}
template <class... Parts>
void log_warning(fmt::format_string<Parts...> format, Parts&&... parts) {
  write_log_line(LogLevel::kWarning, fmt::format(format, std::forward<Parts>(parts)...));
}

/// True if stderr is a terminal: then a progress bar may be drawn.
bool stderr_is_terminal();

}  // namespace lacuna
