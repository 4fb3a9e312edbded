#include "base/child_process.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "base/error.h"
#include "base/interrupt.h"
#include "child.h"
#include "scratch_folder.h"

namespace lacuna {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ChildProcess, GivesWhatTheWorkGives) {
  EXPECT_EQ(run_in_child([] { return std::string(1000000, 'x'); }, "working"), std::string(1000000, 'x'));
  EXPECT_EQ(run_in_child([] { return std::string(); }, "working"), "");
}

TEST(ChildProcess, ThrowsTheErrorsOfTheWork) {
  EXPECT_EQ(message_of<DataError>([] { run_in_child([]() -> std::string { throw DataError("a:1: bad"); }, "working"); }), "a:1: bad");
  EXPECT_EQ(message_of<MachineError>([] { run_in_child([]() -> std::string { throw MachineError("full"); }, "working"); }), "full");
}

TEST(ChildProcess, TurnsACrashIntoAnError) {
  const auto crash = []() -> std::string {
    kill(getpid(), SIGKILL);
    return "never";
  };
  EXPECT_THAT(message_of<MachineError>([&] { run_in_child(crash, "training"); }), AllOf(HasSubstr("training"), HasSubstr("signal 9")));
  const auto leave = []() -> std::string { _exit(3); };
  EXPECT_THAT(message_of<MachineError>([&] { run_in_child(leave, "training"); }), HasSubstr("without a result"));
}

int64_t anonymous_memory_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8));
  return 0;
}

TEST(ChildProcess, GivesItsMemoryBack) {
  const int64_t before = anonymous_memory_kb();
  const auto use_memory = [] { return std::to_string(std::string(200 << 20, 'x').find('y')); };
  run_in_child(use_memory, "working");
  EXPECT_LT(anonymous_memory_kb() - before, 20 << 10);
}

/// Another process that waits for work that never ends.
struct Waiting {
  Waiting() {
    EXPECT_EQ(pipe(ends.data()), 0);
    parent = start_child([&]() -> int {
      handle_interrupts();
      try {
        run_in_child([&] { return endless_work(); }, "working");
      } catch (const Interrupted& error) {
        return error.exit_code();
      }
      return 1;
    });
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1) << "the work has not begun";
  }
  ~Waiting() { close(ends[0]); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  [[noreturn]] std::string endless_work() const {
    alarm(30);  // should nobody end it
    if (write(ends[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  /// No process is left that could write.
  bool both_end() const {
    pollfd wait = {.fd = ends[0], .events = POLLIN, .revents = 0};
    return poll(&wait, 1, 10000) == 1 && (wait.revents & POLLHUP) != 0;
  }

  std::array<int, 2> ends{};
  pid_t parent = 0;
};

TEST(ChildProcess, EndsWithItsParent) {
  const Waiting waiting;
  kill_child(waiting.parent);
  EXPECT_TRUE(waiting.both_end());
}

TEST(ChildProcess, EndsWhenItsParentIsInterrupted) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Waiting waiting;
    kill(waiting.parent, signal);
    const bool ended = waiting.both_end();
    EXPECT_TRUE(ended);
    EXPECT_EQ(ended ? exit_code_of(waiting.parent) : kill_child(waiting.parent), 128 + signal);
  }
}

}  // namespace
}  // namespace lacuna
