#include "base/supervised_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/interrupt.h"

namespace lacuna {
namespace {

constexpr int kCannotStart = 127;
constexpr size_t kLastErrorBytes = 8192;

struct Pipe {
  int read_end = -1, write_end = -1;
};

Pipe make_pipe(const std::string& program) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw MachineError(program + ": no pipe can be made: " + std::strerror(errno));
  return {ends[0], ends[1]};
}

/// Between fork and exec: calls that are safe there, and nothing else.
[[noreturn]] void become(char* const* arguments, pid_t parent, const Pipe& output, const Pipe& errors) {
  setpgid(0, 0);
  release_interrupts();
  if (interrupt_signal() != 0) _exit(128 + interrupt_signal());  // it came before these calls, and would be forgotten
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kCannotStart);  // it died before that call
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(output.write_end, STDOUT_FILENO);
  dup2(errors.write_end, STDERR_FILENO);
  execv(arguments[0], arguments);
  const char* const reason = std::strerror(errno);
  if (write(STDERR_FILENO, reason, std::strlen(reason)) < 0) _exit(kCannotStart);
  _exit(kCannotStart);
}

void write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && !may_try_again(file, POLLOUT)) return;  // nobody reads our log any more
    if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
  }
}

/// Reads what is there; false at the end of the stream.
template <class Take>
bool read_some(int stream, const Take& take) {
  std::array<char, 1 << 16> buffer;
  const ssize_t count = read(stream, buffer.data(), buffer.size());
  if (count > 0) take(std::string_view(buffer.data(), static_cast<size_t>(count)));
  return count > 0 || (count < 0 && errno == EINTR);
}

/// Reads both streams to their ends, and hands on a signal that comes meanwhile.
void supervise(pid_t child, int output, int errors, bool shows_errors, ProgramEnd& end) {
  constexpr int kMilliseconds = 100;
  std::array<pollfd, 2> streams = {pollfd{output, POLLIN, 0}, pollfd{errors, POLLIN, 0}};
  const auto take_output = [&](std::string_view bytes) { end.output += bytes; };
  const auto take_errors = [&](std::string_view bytes) {
    if (shows_errors) write_all(STDERR_FILENO, bytes);
    end.last_errors += bytes;
    if (end.last_errors.size() > 2 * kLastErrorBytes) end.last_errors.erase(0, end.last_errors.size() - kLastErrorBytes);
  };
  bool is_told = false;
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (!is_told && interrupt_signal() != 0) is_told = kill(child, interrupt_signal()) == 0;
    if (poll(streams.data(), streams.size(), kMilliseconds) <= 0) continue;
    if (streams[0].revents != 0 && !read_some(output, take_output)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !read_some(errors, take_errors)) streams[1].fd = -1;
  }
}

void wait_for(pid_t child, ProgramEnd& end) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end.exit_code = end.signal != 0 ? 128 + end.signal : WEXITSTATUS(status);
}

}  // namespace

ProgramEnd run_supervised(const std::vector<std::string>& command, bool shows_errors) {
  const std::string& program = command.front();
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const Pipe output = make_pipe(program), errors = make_pipe(program);
  const pid_t parent = getpid(), child = fork();
  const int fork_error = errno;
  if (child == 0) become(arguments.data(), parent, output, errors);
  close(output.write_end);
  close(errors.write_end);
  ProgramEnd end;
  if (child > 0) supervise(child, output.read_end, errors.read_end, shows_errors, end);
  close(output.read_end);
  close(errors.read_end);
  if (child < 0) throw MachineError(program + ": no process can be started: " + std::strerror(fork_error));
  wait_for(child, end);
  if (end.exit_code == kCannotStart) throw MachineError(program + ": cannot be started: " + end.last_errors);
  return end;
}

}  // namespace lacuna
