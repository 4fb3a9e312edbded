#include "metrics/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/error.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX leaves the declaration to the program

namespace lacuna {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& program, int error_number) {
  throw MachineError("cannot start " + program + ": " + std::strerror(error_number));
}

/// A pipe whose ends close by themselves.
class Pipe {
 public:
  explicit Pipe(const std::string& program) {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) refuse(program, errno);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }

  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write_end() { close_end(1); }

 private:
  void close_end(size_t end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }
  std::array<int, 2> ends_ = {-1, -1};
};

/// This process's environment with changes, in the form that posix_spawn takes.
class Environment {
 public:
  explicit Environment(const std::vector<EnvironmentChange>& changes) {
    for (char** entry = environ; *entry != nullptr; ++entry)
      if (!is_changed(*entry, changes)) entries_.emplace_back(*entry);
    for (const EnvironmentChange& change : changes)
      if (change.value) entries_.push_back(change.name + "=" + *change.value);
    for (std::string& entry : entries_) pointers_.push_back(entry.data());
    pointers_.push_back(nullptr);
  }
  char** data() { return pointers_.data(); }

 private:
  static bool is_changed(const std::string& entry, const std::vector<EnvironmentChange>& changes) {
    for (const EnvironmentChange& change : changes)
      if (entry.starts_with(change.name + "=")) return true;
    return false;
  }
  std::vector<std::string> entries_;
  std::vector<char*> pointers_;
};

/// How the child starts: stdin empty, stdout and stderr into pipes, signals as a fresh program has them, its own process group.
class SpawnPlan {
 public:
  SpawnPlan(int output, int errors) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  pid_t start(const std::vector<std::string>& command, Environment& environment) {
    std::vector<std::string> words = command;
    std::vector<char*> arguments(words.size() + 1);  // ends in a null
    std::transform(words.begin(), words.end(), arguments.begin(), [](std::string& word) { return word.data(); });
    pid_t child = 0;
    const int failure = posix_spawnp(&child, arguments[0], &actions_, &attributes_, arguments.data(), environment.data());
    if (failure != 0) refuse(command.front(), failure);
    return child;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// Reads what is there into `text`; false at the end of the stream.
bool read_some(int stream, std::string& text) {
  std::array<char, 1 << 16> buffer;
  const ssize_t count = read(stream, buffer.data(), buffer.size());
  if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

/// Reads both streams to their ends, side by side: a child that fills one pipe must not wait for us to read the other.
void read_both(int output, int errors, ProcessResult& result) {
  std::array<pollfd, 2> streams = {pollfd{output, POLLIN, 0}, pollfd{errors, POLLIN, 0}};
  const std::array<std::string*, 2> texts = {&result.output, &result.errors};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (poll(streams.data(), streams.size(), -1) < 0) continue;  // interrupted by a signal
    for (size_t i = 0; i < streams.size(); ++i)
      if (streams[i].fd >= 0 && streams[i].revents != 0 && !read_some(streams[i].fd, *texts[i])) streams[i].fd = -1;
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string ProcessResult::last_errors(int count) const {
  std::vector<std::string> lines;
  std::istringstream stream(errors);
  for (std::string line; std::getline(stream, line);)
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back("  " + line);
  std::string text;
  for (size_t i = lines.size() - std::min(lines.size(), static_cast<size_t>(count)); i < lines.size(); ++i)
    text += (text.empty() ? "" : "\n") + lines[i];
  return text;
}

ProcessResult run_process(const std::vector<std::string>& command, const std::vector<EnvironmentChange>& changes) {
  Pipe output(command.front()), errors(command.front());
  Environment environment(changes);
  const pid_t child = SpawnPlan(output.write_end(), errors.write_end()).start(command, environment);
  output.close_write_end();
  errors.close_write_end();
  ProcessResult result;
  read_both(output.read_end(), errors.read_end(), result);
  result.exit_code = wait_for(child);
  return result;
}

std::optional<fs::path> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? std::optional<fs::path>(name) : std::nullopt;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const fs::path candidate = fs::path(folder) / name; is_program(candidate)) return candidate;
  return std::nullopt;
}

}  // namespace lacuna
