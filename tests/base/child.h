#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

namespace lacuna {

/// A process of its own that runs `work` and ends with the exit code that this gives.
template <class F>
pid_t start_child(F work) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    _exit(work());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "a child of the test: %s\n", error.what());
    _exit(99);
  }
}

/// Waits for the end of a child: its exit code, 1000 + the signal that killed it if one did.
inline int exit_code_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
inline constexpr int kKilled = 1000 + SIGKILL;

template <class F>
int exit_code_of_child(F work) {
  return exit_code_of(start_child(work));
}

/// Kills a child that may have ended by itself: as exit_code_of.
inline int kill_child(pid_t child) {
  kill(child, SIGKILL);
  return exit_code_of(child);
}

/// The id of a process that has ended.
inline pid_t ended_process() {
  const pid_t child = start_child([] { return 0; });
  exit_code_of(child);
  return child;
}

/// Waits up to ten seconds.
template <class Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 1000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

}  // namespace lacuna
