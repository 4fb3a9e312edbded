#include "base/interrupt.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <iterator>

#include "base/output.h"

namespace lacuna {
namespace {

constexpr int kInterrupts[] = {SIGINT, SIGTERM, SIGHUP};

volatile sig_atomic_t received = 0;
volatile sig_atomic_t takes_repeated_as_one = 0;
timespec time_received = {};  // by the monotonic clock
int wake_up = -1;             // becomes readable with a signal; -1 = SIGTERM ends more than reading

/// True if the first signal came less than 3 s ago.
bool is_repeated() {
  constexpr time_t kSeconds = 3;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return takes_repeated_as_one != 0 && now.tv_sec - time_received.tv_sec < kSeconds;
}

void on_signal(int signal) {
  if (signal == SIGHUP && received != 0) return;
  if (received != 0) {
    if (is_repeated()) return;
    remove_unfinished_outputs();
    _exit(128 + signal);
  }
  clock_gettime(CLOCK_MONOTONIC, &time_received);
  received = signal;
  const int kept_errno = errno;
  const uint64_t one = 1;
  if (wake_up >= 0 && write(wake_up, &one, sizeof one) < 0) _exit(128 + signal);
  errno = kept_errno;
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

void take_repeated_signals_as_one() {
  takes_repeated_as_one = 1;
}

void adopt_interrupt(int signal) {
  if (signal == 0 || received != 0) return;
  clock_gettime(CLOCK_MONOTONIC, &time_received);
  received = signal;
}

void let_sigterm_end_reading() {
  wake_up = eventfd(0, EFD_CLOEXEC);
  if (wake_up < 0) throw MachineError(std::string("signals cannot be waited for: ") + std::strerror(errno));
}

void wait_to_read(int file, const std::string& name) {
  if (wake_up < 0) return;
  pollfd waits[] = {{.fd = file, .events = POLLIN, .revents = 0}, {.fd = wake_up, .events = POLLIN, .revents = 0}};
  while (received == 0 && poll(waits, std::size(waits), -1) < 0 && errno == EINTR) {
  }
  if (received != 0) throw Interrupted(name + ": interrupted; what was read before is answered");
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
  const bool ends_reading_alone = received == SIGTERM && wake_up >= 0;
  if (received != 0 && !ends_reading_alone) throw Interrupted(what + ": interrupted");
}

}  // namespace lacuna
