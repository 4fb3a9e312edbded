#include "base/process.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "child.h"
#include "scratch_folder.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Process, GivesOutputErrorsAndExitCode) {
  const ProcessResult result = run_process({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
  EXPECT_EQ(result.exit_code, 3);
}

TEST(Process, NoShellReadsTheArguments) {
  EXPECT_EQ(run_process({"printf", "%s", "$HOME; *"}).output, "$HOME; *");
}

TEST(Process, AShellReadsAWordAsItIs) {
  EXPECT_EQ(shell_word("runs/a-b_c.1"), "runs/a-b_c.1");
  EXPECT_EQ(shell_word("über"), "über");
  for (const std::string word : {"", "a b", "it's", "$HOME; *", "~", "a\nb"})
    EXPECT_EQ(run_process({"sh", "-c", "printf %s " + shell_word(word)}).output, word);
}

TEST(Process, LargeOutputOnBothStreamsDoesNotBlock) {
  const ProcessResult result = run_process({"sh", "-c", "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero"});
  EXPECT_EQ(result.output.size(), 1000000u);
  EXPECT_EQ(result.errors.size(), 1000000u);
}

TEST(Process, StandardInputIsEmpty) {
  EXPECT_EQ(run_process({"cat"}).output, "");
}

TEST(Process, DeathBySignalCountsAsInShells) {
  EXPECT_EQ(run_process({"sh", "-c", "kill -9 $$"}).exit_code, 137);
}

TEST(Process, EnvironmentChangesReachTheChildOnly) {
  const ScopedVariable gone("LACUNA_TEST_GONE", "here"), kept("LACUNA_TEST_KEPT", "kept");
  const ProcessResult result = run_process({"sh", "-c", "echo \"${LACUNA_TEST_GONE-unset} $LACUNA_TEST_KEPT $LACUNA_TEST_NEW\""},
                                           {.environment = {{"LACUNA_TEST_GONE", {}}, {"LACUNA_TEST_NEW", "new"}}});
  EXPECT_EQ(result.output, "unset kept new\n");
  EXPECT_STREQ(std::getenv("LACUNA_TEST_GONE"), "here");
}

TEST(Process, HasAProcessGroupOfItsOwn) {
  const ProcessResult result = run_process({"sh", "-c", "echo $$; ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat"});
  const size_t line_end = result.output.find('\n');
  EXPECT_EQ(std::stoi(result.output.substr(0, line_end)), std::stoi(result.output.substr(line_end)));
}

TEST(Process, AMissingProgramIsNamed) {
  EXPECT_THAT(message_of<MachineError>([] { run_process({"/no/such/program"}); }),
              HasSubstr("cannot start /no/such/program: No such file"));
}

TEST(Process, LastErrorsSkipBlankLines) {
  const ProcessResult result = {.errors = "one\n\ntwo\nthree\n\n"};
  EXPECT_EQ(result.last_errors(2), "  two\n  three");
}

TEST(FindProgram, LooksOnPath) {
  const ScratchFolder scratch;
  const auto program = scratch.write_program("some-program", "exit 0");
  const ScopedVariable path("PATH", "/nowhere:" + scratch.path().string());
  EXPECT_EQ(find_program("some-program"), program);
}

TEST(FindProgram, IgnoresFilesThatCannotRunAndFolders) {
  const ScratchFolder scratch;
  scratch.write("text", "");
  std::filesystem::create_directory(scratch.path() / "folder");
  const ScopedVariable path("PATH", scratch.path().string());
  EXPECT_FALSE(find_program("text"));
  EXPECT_FALSE(find_program("folder"));
}

ProcessResult run_shell(const std::string& script) {
  return run_process({"/bin/sh", "-c", script}, {.is_supervised = true});
}

TEST(SupervisedProcess, GivesOutputErrorsAndExitCode) {
  const ProcessResult end = run_shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(end.output, "out\n");
  EXPECT_EQ(end.errors, "err\n");
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.signal, 0);
}

TEST(SupervisedProcess, KeepsTheEndOfLongErrors) {
  const ProcessResult end = run_shell("head -c 1000000 /dev/zero >&2; echo last >&2");
  EXPECT_LT(end.errors.size(), 20000u);
  EXPECT_TRUE(end.errors.ends_with("last\n"));
}

TEST(SupervisedProcess, CountsASignalAsShellsDo) {
  const ProcessResult end = run_shell("kill -9 $$");
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_EQ(end.signal, 9);
}

/// Another process that supervises `script`, and has its exit code. It has come so far as to make a file `started`.
pid_t supervise_elsewhere(const ScratchFolder& folder, const std::string& script) {
  const pid_t supervisor = start_child([&] {
    setpgid(0, 0);
    handle_interrupts();
    return run_shell("cd " + folder.path().string() + "; " + script).exit_code;
  });
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(folder / "started"); }));
  return supervisor;
}

TEST(SupervisedProcess, GetsTheSignalThatItsSupervisorGets) {
  const ScratchFolder folder;
  const pid_t supervisor = supervise_elsewhere(folder, "trap 'exit 7' TERM; echo > started; while :; do sleep 0.05; done");
  kill(supervisor, SIGTERM);
  EXPECT_EQ(exit_code_of(supervisor), 7);
}

/// As Ctrl-C in a terminal does. The supervisor is held up meanwhile, so that what it hands on comes second.
TEST(SupervisedProcess, IsToldOnceWhenAllOfItsSupervisorsGroupAre) {
  const ScratchFolder folder;
  const pid_t supervisor =
      supervise_elsewhere(folder, "trap 'echo >> told' TERM; echo > started; while ! [ -e enough ]; do sleep 0.02; done; exit 7");
  kill(supervisor, SIGSTOP);
  killpg(supervisor, SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  kill(supervisor, SIGCONT);
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(folder / "told"); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  folder.write("enough", "");
  EXPECT_EQ(exit_code_of(supervisor), 7);
  EXPECT_EQ(bytes_of(folder / "told"), "\n");
}

TEST(SupervisedProcess, IsAskedToEndWhenItsSupervisorIsKilled) {
  const ScratchFolder folder;
  const pid_t supervisor = supervise_elsewhere(folder, "trap 'echo > ended; exit' TERM; echo > started; while :; do sleep 0.05; done");
  kill_child(supervisor);
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(folder / "ended"); }));
}

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
