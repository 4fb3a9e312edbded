#include "base/supervised_program.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "../base/scratch_folder.h"
#include "base/error.h"
#include "base/interrupt.h"

namespace lacuna {
namespace {

using testing::HasSubstr;

ProgramEnd run_shell(const std::string& script) {
  return run_supervised({"/bin/sh", "-c", script}, /*shows_errors=*/false);
}

/// Waits up to ten seconds.
template <class Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 1000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

TEST(SupervisedProgram, GivesOutputErrorsAndExitCode) {
  const ProgramEnd end = run_shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(end.output, "out\n");
  EXPECT_EQ(end.last_errors, "err\n");
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.signal, 0);
}

TEST(SupervisedProgram, KeepsTheEndOfLongErrors) {
  const ProgramEnd end = run_shell("head -c 1000000 /dev/zero >&2; echo last >&2");
  EXPECT_LT(end.last_errors.size(), 20000u);
  EXPECT_TRUE(end.last_errors.ends_with("last\n"));
}

TEST(SupervisedProgram, CountsASignalAsShellsDo) {
  const ProgramEnd end = run_shell("kill -9 $$");
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_EQ(end.signal, 9);
}

TEST(SupervisedProgram, ThatIsNotThereIsAnError) {
  EXPECT_THAT(message_of<MachineError>([] { run_supervised({"/no/such/program"}, false); }), HasSubstr("No such file"));
}

/// Another process that supervises `script`; its exit code is the program's.
pid_t supervise_elsewhere(const std::string& script) {
  const pid_t child = fork();
  if (child != 0) return child;
  handle_interrupts();
  _exit(run_shell(script).exit_code);
}

TEST(SupervisedProgram, GetsTheSignalThatItsSupervisorGets) {
  const ScratchFolder folder;
  const std::string started = folder / "started";
  const pid_t supervisor = supervise_elsewhere("trap 'exit 7' TERM; echo > " + started + "; while :; do sleep 0.05; done");
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(started); }));
  kill(supervisor, SIGTERM);
  int status = 0;
  waitpid(supervisor, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(SupervisedProgram, IsAskedToEndWhenItsSupervisorIsKilled) {
  const ScratchFolder folder;
  const std::string started = folder / "started", ended = folder / "ended";
  const pid_t supervisor =
      supervise_elsewhere("trap 'echo > " + ended + "; exit' TERM; echo > " + started + "; while :; do sleep 0.05; done");
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(started); }));
  kill(supervisor, SIGKILL);
  waitpid(supervisor, nullptr, 0);
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(ended); }));
}

}  // namespace
}  // namespace lacuna
