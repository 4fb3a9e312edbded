#include "base/child_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>

#include "base/error.h"
#include "base/interrupt.h"

namespace lacuna {
namespace {

// The first byte of what a child sends.
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

[[noreturn]] void be_the_child(const std::function<std::string()>& work, pid_t parent, int pipe_end) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before that call
  release_interrupts();
  const std::string outcome = outcome_of(work);
  for (size_t sent = 0; sent < outcome.size();) {
    const ssize_t count = write(pipe_end, outcome.data() + sent, outcome.size() - sent);
    if (count < 0 && errno != EINTR) _exit(1);
    if (count > 0) sent += static_cast<size_t>(count);
  }
  _exit(0);
}

/// What the child sends, to its end; a signal to this process ends the child.
std::string read_to_end(int pipe_end, pid_t child) {
  constexpr int kMilliseconds = 100;
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    if (interrupt_signal() != 0) kill(child, SIGKILL);
    pollfd wait = {.fd = pipe_end, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, kMilliseconds) <= 0) continue;
    const ssize_t count = read(pipe_end, buffer, sizeof buffer);
    if (count == 0 || (count < 0 && errno != EINTR)) return bytes;
    if (count > 0) bytes.append(buffer, static_cast<size_t>(count));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::string run_in_child(const std::function<std::string()>& work, const std::string& what) {
  int ends[2];
  if (pipe(ends) != 0) throw MachineError(what + ": no pipe can be made: " + std::strerror(errno));
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    close(ends[0]);
    be_the_child(work, parent, ends[1]);
  }
  const int fork_error = errno;
  close(ends[1]);
  std::string outcome = child > 0 ? read_to_end(ends[0], child) : "";
  close(ends[0]);
  if (child < 0) throw MachineError(what + ": no process can be started: " + std::strerror(fork_error));
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
