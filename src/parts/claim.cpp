#include "parts/claim.h"

#include <fcntl.h>
#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/durable_files.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/resources.h"
#include "base/system_error.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

/// Returns when a process of this host started, in ticks since the system did; 0 if there is none, or none to be seen. With its number it
/// tells a process from a later one that was given the same number.
uint64_t start_ticks_of(int64_t process) {
  constexpr int kFieldsBehindName = 19;  // of /proc/PID/stat, up to the start
  try {
    std::string stat = read_file("/proc/" + std::to_string(process) + "/stat");
    size_t at = stat.rfind(')');
    for (int field = 0; field <= kFieldsBehindName && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
    return at == std::string::npos ? 0 : std::stoull(stat.substr(at));
  } catch (const std::exception&) {
    return 0;
  }
}

std::string text_of_claim() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  const nlohmann::ordered_json claim = {{"host", host_name()},
                                        {"process", getpid()},
                                        {"start", fmt::format("{:%Y-%m-%d %H:%M:%S}", local)},
                                        {"writer", WriterProcess().name()},
                                        {"start_ticks", start_ticks_of(getpid())}};
  return json_text(claim) + "\n";
}

/// True if the process that wrote the claim ran here and has ended, though another may have its number now.
bool has_ended(const nlohmann::json& claim) {
  const auto writer = WriterProcess::parse(claim.at("writer").get<std::string>());
  if (!writer) return false;
  if (writer->has_ended_here()) return true;
  const std::string mine = WriterProcess().name(), machine = mine.substr(0, mine.find('.') + 1);
  if (!writer->name().starts_with(machine)) return false;
  const uint64_t then = claim.at("start_ticks").get<uint64_t>(), now = start_ticks_of(claim.at("process").get<int64_t>());
  return then != 0 && now != 0 && then != now;
}

/// Writes the claim and returns its open file; -1 with errno if it cannot be made.
int write_claim(const fs::path& file) {
  const int made = uninterrupted([&] { return open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  if (made < 0) return made;
  const std::string text = text_of_claim();
  if (uninterrupted([&] { return write(made, text.data(), text.size()); }) == std::ssize(text)) return made;
  const int error = errno;
  unlink(file.c_str());
  close(made);
  errno = error;
  return -1;
}

}  // namespace

std::string ClaimState::holder() const {
  return host.empty() ? "a worker that has not said its name" : fmt::format("{}, process {}", host, process);
}

ClaimState look_at_claim(const fs::path& file, double now, double lease) {
  constexpr uint64_t kMostBytes = 4096;
  ClaimState state;
  const int found = uninterrupted([&] { return open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW); });
  if (found < 0 && errno == ENOENT) return state;
  if (found < 0) fail_by(errno, file.string() + ": cannot be read: ");
  struct stat status = {};
  fstat(found, &status);
  std::string text(kMostBytes, '\0');
  const ssize_t bytes = uninterrupted([&] { return read(found, text.data(), text.size()); });
  close(found);
  text.resize(static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
  state.is_there = true;
  state.idle_seconds = std::max(0.0, now - static_cast<double>(status.st_mtim.tv_sec) - static_cast<double>(status.st_mtim.tv_nsec) * 1e-9);
  state.is_stale = state.idle_seconds > lease;
  try {
    const nlohmann::json claim = nlohmann::json::parse(text);
    state.process = claim.at("process").get<int64_t>();
    state.start = claim.at("start").get<std::string>();
    state.is_stale = state.is_stale || has_ended(claim);
    state.host = claim.at("host").get<std::string>();
  } catch (const nlohmann::json::exception&) {  // half-written: its lease counts
  }
  return state;
}

std::unique_ptr<Claim> Claim::try_take(const fs::path& file, double now, double lease) {
  int made = write_claim(file);
  if (made < 0 && errno != EEXIST) fail_to_write(file, 0);
  if (made < 0) {
    if (const ClaimState former = look_at_claim(file, now, lease); former.is_there && !former.is_stale) return nullptr;
    // The new claim replaces the former one in a step. If two do so at once, the second one has it; the first one sees that, or does the
    // work for nothing.
    const fs::path temporary = file.string() + "." + WriterProcess().name();
    unlink(temporary.c_str());
    made = write_claim(temporary);
    if (made < 0) fail_to_write(file, 0);
    if (rename(temporary.c_str(), file.c_str()) != 0) {
      const int error = errno;
      unlink(temporary.c_str());
      close(made);
      errno = error;
      fail_to_write(file, 0);
    }
  }
  return std::unique_ptr<Claim>(new Claim(file, made, lease));
}

Claim::Claim(fs::path path, int file, double lease) : path_(std::move(path)), file_(file) {
  constexpr double kTouchesInLease = 10, kLongest = 30;
  const std::chrono::duration<double> pause(std::min(kLongest, lease / kTouchesInLease));
  toucher_ = std::thread([this, pause] { touch_until_end(pause); });
}

Claim::~Claim() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  end_.notify_one();
  toucher_.join();
  if (is_held()) unlink(path_.c_str());
  close(file_);
}

void Claim::touch_until_end(std::chrono::duration<double> pause) {
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, pause, [this] { return is_ending_; })) futimens(file_, nullptr);  // where it fails, the lease ends
}

bool Claim::is_held() const {
  struct stat held = {}, found = {};
  return fstat(file_, &held) == 0 && stat(path_.c_str(), &found) == 0 && held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

}  // namespace lacuna
