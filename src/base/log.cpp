#include "base/log.h"

#include <fcntl.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/durable_files.h"
#include "base/error.h"
#include "base/files.h"
#include "base/log_sink.h"
#include "base/system_error.h"

namespace lacuna {
namespace {

spdlog::color_mode stderr_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color != nullptr && *no_color != 0 ? spdlog::color_mode::never : spdlog::color_mode::automatic;
}

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("lacuna", std::make_shared<spdlog::sinks::stderr_color_sink_mt>(stderr_color()));
    made.set_pattern("[%Y-%m-%d %H:%M:%S] %^%l%$ %v");
    made.flush_on(spdlog::level::info);
    return made;
  }();
  return instance;
}

std::atomic<int64_t> warnings = 0;
LogLevel asked_level = LogLevel::kInfo, least_level = LogLevel::kInfo;

std::string& prefix() {
  static std::string text;
  return text;
}

LogSink& log_sink() {
  static LogSink sink;
  return sink;
}

/// The logger of log_to_file; null if none was set.
std::unique_ptr<spdlog::logger>& file_logger() {
  static std::unique_ptr<spdlog::logger> instance;
  return instance;
}

std::function<bool()>& may_write_file() {
  static std::function<bool()> question;
  return question;
}

/// The file of log_to_file, opened to be synced: it may be renamed meanwhile. -1 if none was set.
int& log_file() {
  static int file = -1;
  return file;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::info, spdlog::level::warn, spdlog::level::err, spdlog::level::off};
  return kLevels[static_cast<size_t>(level)];
}

}  // namespace

void set_log_level(LogLevel level) {
  asked_level = level;
  logger().set_level(spdlog_level(std::max(asked_level, least_level)));
}

void set_least_log_level(LogLevel level) {
  least_level = level;
  set_log_level(asked_level);
}

void set_log_name(const std::string& name) {
  prefix() = "[" + name + "] ";
}

const std::string& log_prefix() {
  return prefix();
}

void log_to_file(const std::string& path, std::function<bool()> may_write) {
  const uint64_t zeros = drop_zeros_at_end(path);
  constexpr mode_t kAsTheUmaskSays = 0666;
  const int file = uninterrupted([&] { return open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kAsTheUmaskSays); });
  if (file < 0) throw MachineError(path + ": the log cannot be written: " + std::strerror(errno));
  if (log_file() >= 0) close(log_file());
  log_file() = file;
  may_write_file() = std::move(may_write);
  try {  // spdlog, given the path, would make a folder that is gone anew
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>("/proc/self/fd/" + std::to_string(file));
    file_logger() = std::make_unique<spdlog::logger>("file", std::move(sink));
    file_logger()->set_pattern("[%Y-%m-%d %H:%M:%S] %l %v");
    file_logger()->flush_on(spdlog::level::info);
  } catch (const spdlog::spdlog_ex& error) {
    throw MachineError(path + ": the log cannot be written: " + error.what());
  }
  if (zeros > 0) log_warning("{}: {} zeros at its end, as a loss of power leaves them, are cut off", path, zeros);
}

void sync_log_file() {
  if (log_file() < 0 || uninterrupted([] { return fsync(log_file()); }) == 0 || errno == EINVAL || errno == EROFS) return;
  throw MachineError(std::string("the log cannot be brought to the disk: ") + std::strerror(errno));
}

int64_t warnings_logged() {
  return warnings;
}

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t count = 0; !text.empty(); text.remove_prefix(count)) {
    const auto byte = static_cast<unsigned char>(text[0]), next = static_cast<unsigned char>(text.size() > 1 ? text[1] : 0);
    const bool is_text = first_invalid_utf8(text.substr(0, 4)) != size_t{0},
               is_late_control = byte == 0xC2 && next < 0xA0;  // U+0080 to U+009F
    count = !is_text || byte < 0x80 ? 1 : static_cast<size_t>(std::countl_one(byte));
    if (is_text && !is_late_control && (byte >= 0x20 || byte == '\n' || byte == '\t') && byte != 0x7F)
      result += text.substr(0, count);
    else
      for (const char one : text.substr(0, count)) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(one));
  }
  return result;
}

void send_log_to(LogSink sink) {
  log_sink() = std::move(sink);
}

void write_log_line(LogLevel level, const std::string& text) {
  if (level == LogLevel::kWarning) ++warnings;
  const std::string line = printable(text);
  if (log_sink()) return log_sink()(level, line);
  logger().log(spdlog_level(level), "{}{}", log_prefix(), line);
  if (file_logger() && may_write_file()()) file_logger()->log(spdlog_level(level), "{}", line);
}

void log_error_to_file(const std::string& text) {
  if (file_logger() && may_write_file()()) file_logger()->error("{}", printable(text));
}

bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) == 1;
}

}  // namespace lacuna
