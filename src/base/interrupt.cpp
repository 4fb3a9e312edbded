#include "base/interrupt.h"

#include <signal.h>
#include <unistd.h>

namespace lacuna {
namespace {

volatile sig_atomic_t received = 0;

void on_signal(int signal) {
  if (received != 0) _exit(128 + signal);
  received = signal;
}

}  // namespace

void handle_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void ignore_signals_of_writes() {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
  sigaction(SIGXFSZ, &ignore, nullptr);
}

int interrupt_signal() {
  return received;
}

void stop_if_interrupted(const std::string& what) {
  if (received != 0) throw Interrupted(what + ": interrupted");
}

}  // namespace lacuna
