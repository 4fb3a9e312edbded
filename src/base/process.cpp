#include "base/process.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr int kPollMilliseconds = 100;  // how soon a signal to this process is noticed

[[noreturn]] void fail_to_start(const std::string& what, int error_number) {
  throw MachineError("cannot start " + what + ": " + std::strerror(error_number));
}

/// A pipe that closes its ends in the destructor, and in programs that are started.
class Pipe {
 public:
  explicit Pipe(const std::string& what) {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) fail_to_start(what, errno);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }

  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_read_end() { close_end(0); }
  void close_write_end() { close_end(1); }

 private:
  void close_end(size_t end) {
    if (ends_[end] >= 0) close(ends_[end]);
    ends_[end] = -1;
  }
  std::array<int, 2> ends_ = {-1, -1};
};

/// Strings as the null-terminated array of pointers that exec takes.
class PointerArray {
 public:
  explicit PointerArray(std::vector<std::string> strings) : strings_(std::move(strings)) {
    for (std::string& string : strings_) pointers_.push_back(string.data());
    pointers_.push_back(nullptr);
  }
  PointerArray(const PointerArray&) = delete;
  PointerArray& operator=(const PointerArray&) = delete;
  char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> strings_;
  std::vector<char*> pointers_;
};

/// This process's environment after the changes, as "NAME=VALUE".
std::vector<std::string> changed_environment(const std::vector<EnvironmentChange>& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const auto changes_it = [&](const EnvironmentChange& change) { return std::string_view(*entry).starts_with(change.name + "="); };
    if (std::none_of(changes.begin(), changes.end(), changes_it)) entries.emplace_back(*entry);
  }
  for (const EnvironmentChange& change : changes)
    if (change.value) entries.push_back(change.name + "=" + *change.value);
  return entries;
}

/// All that a child needs between vfork and exec.
struct ChildSetup {
  char* const* arguments;
  char* const* environment;
  int output, errors;  // write ends of pipes; -1 = as this process has them
  pid_t parent;
  int passed_file = -1;
  const cpu_set_t* cpus = nullptr;
  int memory_node = -1;
  volatile int error_number = 0;  // set by the child, whose memory is ours: why exec failed
};

/// Takes memory of this NUMA node first.
void prefer_memory_of(size_t node) {
  constexpr size_t kMostNodes = 1024, kBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, kMostNodes / kBits> mask = {};
  if (node >= kMostNodes) return;
  mask[node / kBits] |= 1UL << (node % kBits);
  syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask.data(), kMostNodes);
}

/// Runs in the child with the parent's memory: makes system calls and nothing else. All signals are blocked on entry.
[[noreturn]] void exec_program(ChildSetup& setup) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != setup.parent) _exit(1);  // the parent died before that call
  release_interrupts();                     // before they are unblocked: their handler would write to the parent's memory
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  if (setup.output >= 0) dup2(setup.output, STDOUT_FILENO);
  if (setup.errors >= 0) dup2(setup.errors, STDERR_FILENO);
  if (setup.passed_file >= 0) fcntl(setup.passed_file, F_SETFD, 0);
  if (setup.cpus != nullptr) sched_setaffinity(0, sizeof *setup.cpus, setup.cpus);
  if (setup.memory_node >= 0) prefer_memory_of(static_cast<size_t>(setup.memory_node));
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(setup.arguments[0], setup.arguments, setup.environment);
  setup.error_number = errno;
  _exit(1);
}

/// Starts the child and returns its id, or -1 with errno. vfork, so that the memory of a large process is neither copied nor promised
/// twice.
pid_t start_child_of(ChildSetup& setup) {
  sigset_t all, former;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  const pid_t child = vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork): exec_program() keeps to what is safe
  if (child == 0) exec_program(setup);
  const int error_number = errno;
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  errno = error_number;
  return child;
}

/// Starts the program of `setup`, which is named by its first argument, and returns its id.
pid_t started(ChildSetup& setup) {
  const pid_t child = start_child_of(setup);
  if (child < 0) fail_to_start(setup.arguments[0], errno);
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

EndedProcess end_of(pid_t child, int status) {
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return {.id = child, .exit_code = signal != 0 ? 128 + signal : WEXITSTATUS(status), .signal = signal};
}

void write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && !may_try_again(file, POLLOUT)) return;  // nobody reads it any more
    if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
  }
}

/// Appends what can be read now to `text`; false at the end of the stream.
bool read_some(int stream, std::string& text) {
  std::array<char, 1 << 16> buffer;
  const ssize_t count = read(stream, buffer.data(), buffer.size());
  if (count > 0) text.append(buffer.data(), static_cast<size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

/// Copies what was appended to `errors` since it had `old_size` bytes to our stderr, and drops its beginning when it grows long.
void show_errors(std::string& errors, size_t old_size) {
  constexpr size_t kKeptBytes = 8192;
  write_all(STDERR_FILENO, std::string_view(errors).substr(old_size));
  if (errors.size() > 2 * kKeptBytes) errors.erase(0, errors.size() - kKeptBytes);
}

/// Reads both streams side by side to their ends (a child that fills one pipe must not wait for us to read the other).
void read_both(pid_t child, int output, int errors, bool is_supervised, ProcessResult& result) {
  std::array<pollfd, 2> streams = {pollfd{output, POLLIN, 0}, pollfd{errors, POLLIN, 0}};
  bool was_forwarded = false;
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (is_supervised && !was_forwarded && interrupt_signal() != 0) was_forwarded = kill(child, interrupt_signal()) == 0;
    if (poll(streams.data(), streams.size(), kPollMilliseconds) <= 0) continue;
    const size_t old_size = result.errors.size();
    if (streams[0].revents != 0 && !read_some(output, result.output)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !read_some(errors, result.errors)) streams[1].fd = -1;
    if (is_supervised) show_errors(result.errors, old_size);
  }
}

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

// The first byte of what a forked child sends.
constexpr char kResult = 'R', kDataError = 'D', kMachineError = 'M';

std::string outcome_of(const std::function<std::string()>& work) {
  try {
    return kResult + work();
  } catch (const DataError& error) {
    return kDataError + std::string(error.what());
  } catch (const std::exception& error) {
    return kMachineError + std::string(error.what());
  }
}

[[noreturn]] void work_in_child(const std::function<std::string()>& work, pid_t parent, int pipe_end) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before that call
  release_interrupts();
  write_all(pipe_end, outcome_of(work));
  _exit(0);
}

/// Reads what the child sends to its end. A signal to this process kills the child.
std::string read_outcome(int pipe_end, pid_t child) {
  std::string bytes;
  for (;;) {
    if (interrupt_signal() != 0) kill(child, SIGKILL);
    pollfd wait = {.fd = pipe_end, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, kPollMilliseconds) > 0 && !read_some(pipe_end, bytes)) return bytes;
  }
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

ProcessResult run_process(const std::vector<std::string>& command, const ProcessOptions& options) {
  const std::string& program = command.front();
  Pipe output(program), errors(program);
  const PointerArray arguments(command), environment(changed_environment(options.environment));
  ChildSetup setup = {.arguments = arguments.data(),
                      .environment = environment.data(),
                      .output = output.write_end(),
                      .errors = errors.write_end(),
                      .parent = getpid()};
  const pid_t child = started(setup);
  output.close_write_end();
  errors.close_write_end();
  ProcessResult result;
  read_both(child, output.read_end(), errors.read_end(), options.is_supervised, result);
  const int status = wait_for(child);
  if (setup.error_number != 0) fail_to_start(program, setup.error_number);
  const EndedProcess end = end_of(child, status);
  result.signal = end.signal;
  result.exit_code = end.exit_code;
  return result;
}

pid_t start_process(const std::vector<std::string>& command, const StartOptions& options) {
  const PointerArray arguments(command), environment(changed_environment(options.environment));
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  for (const int cpu : options.cpus) CPU_SET(static_cast<size_t>(cpu), &cpus);
  ChildSetup setup = {.arguments = arguments.data(),
                      .environment = environment.data(),
                      .output = -1,
                      .errors = -1,
                      .parent = getpid(),
                      .passed_file = options.passed_file,
                      .cpus = options.cpus.empty() ? nullptr : &cpus,
                      .memory_node = options.memory_node};
  const pid_t child = started(setup);
  if (setup.error_number == 0) return child;
  wait_for(child);
  fail_to_start(command.front(), setup.error_number);
}

std::optional<EndedProcess> wait_for_end(std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kPause{20};
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    int status = 0;
    if (const pid_t child = waitpid(-1, &status, WNOHANG); child > 0) return end_of(child, status);
    if (std::chrono::steady_clock::now() >= end) return {};
    std::this_thread::sleep_for(std::min(kPause, timeout));
  }
}

std::optional<fs::path> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? std::optional<fs::path>(name) : std::nullopt;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (fs::path candidate = fs::path(folder) / name; is_program(candidate)) return candidate;
  return std::nullopt;
}

std::string shell_word(const std::string& word) {
  const auto is_plain = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalnum(byte) != 0 || std::string_view("@%+=:,./-_").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) c == '\'' ? quoted += "'\\''" : quoted += c;
  return quoted + "'";
}

std::string run_in_child(const std::function<std::string()>& work, const std::string& what) {
  Pipe pipe(what);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) fail_to_start(what, errno);
  if (child == 0) {
    pipe.close_read_end();
    work_in_child(work, parent, pipe.write_end());
  }
  pipe.close_write_end();
  std::string outcome = read_outcome(pipe.read_end(), child);
  const int status = wait_for(child);
  stop_if_interrupted(what);
  if (WIFSIGNALED(status))
    throw MachineError(what + ": ended by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")" +
                       (WTERMSIG(status) == SIGKILL ? "; was memory short?" : ""));
  if (status != 0 || outcome.empty()) throw MachineError(what + ": ended without a result");
  const char kind = outcome[0];
  outcome.erase(0, 1);
  if (kind == kDataError) throw DataError(outcome);
  if (kind == kMachineError) throw MachineError(outcome);
  return outcome;
}

}  // namespace lacuna
