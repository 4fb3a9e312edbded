#include "base/supervised_program.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "child.h"
#include "scratch_folder.h"

namespace lacuna {
namespace {

using testing::HasSubstr;

ProgramEnd run_shell(const std::string& script) {
  return run_supervised({"/bin/sh", "-c", script}, /*shows_errors=*/false);
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

TEST(SupervisedProgram, GetsTheSignalThatItsSupervisorGets) {
  const ScratchFolder folder;
  const pid_t supervisor = supervise_elsewhere(folder, "trap 'exit 7' TERM; echo > started; while :; do sleep 0.05; done");
  kill(supervisor, SIGTERM);
  EXPECT_EQ(exit_code_of(supervisor), 7);
}

/// As Ctrl-C in a terminal does. The supervisor is held up meanwhile, so that what it hands on comes second.
TEST(SupervisedProgram, IsToldOnceWhenAllOfItsSupervisorsGroupAre) {
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

TEST(SupervisedProgram, IsAskedToEndWhenItsSupervisorIsKilled) {
  const ScratchFolder folder;
  const pid_t supervisor = supervise_elsewhere(folder, "trap 'echo > ended; exit' TERM; echo > started; while :; do sleep 0.05; done");
  kill_child(supervisor);
  EXPECT_TRUE(comes_true([&] { return std::filesystem::exists(folder / "ended"); }));
}

}  // namespace
}  // namespace lacuna
