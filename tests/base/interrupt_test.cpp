#include "base/interrupt.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "child.h"
#include "scratch_folder.h"

namespace lacuna {
namespace {

/// As of a process that was started without nohup, however the test was started.
void take_over_interrupts() {
  signal(SIGHUP, SIG_DFL);
  handle_interrupts();
}

TEST(Interrupt, TheFirstSignalIsRemembered) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    EXPECT_EQ(exit_code_of_child([=] {
                take_over_interrupts();
                if (interrupt_signal() != 0) return 1;
                raise(signal);
                return interrupt_signal();
              }),
              signal);
}

TEST(Interrupt, TheSecondSignalEndsTheProcess) {
  EXPECT_EQ(exit_code_of_child([] {
              handle_interrupts();
              raise(SIGINT);
              raise(SIGTERM);
              return 0;
            }),
            143);
}

TEST(Interrupt, SighupIsNeverTheSecond) {
  for (const int first : {SIGINT, SIGTERM, SIGHUP})
    EXPECT_EQ(exit_code_of_child([=] {
                take_over_interrupts();
                raise(first);
                raise(SIGHUP);
                return interrupt_signal();
              }),
              first);
  EXPECT_EQ(exit_code_of_child([] {
              take_over_interrupts();
              raise(SIGHUP);
              raise(SIGTERM);
              return 0;
            }),
            143);
}

TEST(Interrupt, WhoIsStartedWithoutSighupGoesOn) {
  EXPECT_EQ(exit_code_of_child([] {
              signal(SIGHUP, SIG_IGN);  // as nohup does
              handle_interrupts();
              raise(SIGHUP);
              return interrupt_signal();
            }),
            0);
}

TEST(Interrupt, AChildThatGivesTheSignalsBackEndsByThem) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    EXPECT_EQ(exit_code_of_child([=] {
                take_over_interrupts();
                release_interrupts();
                raise(signal);
                return 0;
              }),
              1000 + signal);
}

TEST(Interrupt, WorkStopsWithTheCodeOfTheSignal) {
  EXPECT_EQ(exit_code_of_child([] {
              handle_interrupts();
              stop_if_interrupted("reading");
              raise(SIGINT);
              try {
                stop_if_interrupted("reading");
              } catch (const Error& error) {
                return std::string(error.what()) == "reading: interrupted" ? error.exit_code() : 1;
              }
              return 0;
            }),
            130);
}

/// The code that a child ends with which answers before SIGTERM and gets this signal while it waits for input.
int code_after_waiting(int signal) {
  return exit_code_of_child([=] {
    take_over_interrupts();
    let_sigterm_end_reading();
    int ends[2];
    if (pipe(ends) != 0) return 1;
    raise(signal);
    try {
      wait_to_read(ends[0], "stdin");
    } catch (const Interrupted& error) {
      return error.exit_code();
    }
    return 0;
  });
}

TEST(Interrupt, ASignalEndsWaitingForInput) {
  EXPECT_EQ(code_after_waiting(SIGTERM), 143);
  EXPECT_EQ(code_after_waiting(SIGINT), 130);
}

TEST(Interrupt, SigtermMayLeaveWorkAlone) {
  EXPECT_EQ(exit_code_of_child([] {
              handle_interrupts();
              let_sigterm_end_reading();
              raise(SIGTERM);
              stop_if_interrupted("translating");
              return interrupt_signal();
            }),
            SIGTERM);
  EXPECT_EQ(exit_code_of_child([] {
              handle_interrupts();
              let_sigterm_end_reading();
              raise(SIGTERM);
              raise(SIGTERM);
              return 0;
            }),
            143);
}

TEST(Interrupt, ReadingGoesOnWhereSignalsEndAllWork) {
  EXPECT_EQ(exit_code_of_child([] {
              handle_interrupts();
              raise(SIGTERM);
              wait_to_read(0, "stdin");
              return 7;
            }),
            7);
}

TEST(Interrupt, AClosedOutputIsAnErrorOfTheWrite) {
  EXPECT_EQ(exit_code_of_child([] {
              ignore_write_signals();
              int ends[2];
              if (pipe(ends) != 0) return 1;
              close(ends[0]);
              return write(ends[1], "x", 1) < 0 && errno == EPIPE ? 0 : 2;
            }),
            0);
}

TEST(Interrupt, AFileThatMayNotGrowIsAnErrorOfTheWrite) {
  const ScratchFolder folder;
  EXPECT_EQ(exit_code_of_child([&] {
              ignore_write_signals();
              const rlimit none = {0, 0};
              const int file = open((folder / "file").c_str(), O_WRONLY | O_CREAT, 0600);
              if (file < 0 || setrlimit(RLIMIT_FSIZE, &none) != 0) return 1;
              return write(file, "x", 1) < 0 && errno == EFBIG ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace lacuna
