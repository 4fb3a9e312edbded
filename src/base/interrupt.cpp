#include "base/interrupt.h"

#include <signal.h>
#include <unistd.h>

namespace lacuna {
namespace {

constexpr int kInterrupts[] = {SIGINT, SIGTERM, SIGHUP};

volatile sig_atomic_t received = 0;

void on_signal(int signal) {
  if (signal == SIGHUP && received != 0) return;
  if (received != 0) _exit(128 + signal);
  received = signal;
}

}  // namespace

void handle_interrupts() {
  struct sigaction action = {}, former = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (const int signal : kInterrupts) {
    sigaction(signal, &action, &former);
    if (signal == SIGHUP && former.sa_handler == SIG_IGN) sigaction(signal, &former, nullptr);
  }
}

void release_interrupts() {
  struct sigaction former = {}, by_default = {};
  by_default.sa_handler = SIG_DFL;
  for (const int signal : kInterrupts)
    if (sigaction(signal, nullptr, &former) == 0 && former.sa_handler == on_signal) sigaction(signal, &by_default, nullptr);
}

void ignore_write_signals() {
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
