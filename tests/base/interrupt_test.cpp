#include "base/interrupt.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "child.h"

namespace lacuna {
namespace {

TEST(Interrupt, TheFirstSignalIsRemembered) {
  for (const int signal : {SIGINT, SIGTERM})
    EXPECT_EQ(exit_code_of_child([=] {
                handle_interrupts();
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

TEST(Interrupt, AClosedOutputIsAnErrorOfTheWrite) {
  EXPECT_EQ(exit_code_of_child([] {
              ignore_broken_pipes();
              int ends[2];
              if (pipe(ends) != 0) return 1;
              close(ends[0]);
              return write(ends[1], "x", 1) < 0 && errno == EPIPE ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace lacuna
