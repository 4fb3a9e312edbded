#include "ranks/launcher.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "base/interrupt.h"
#include "base/log.h"
#include "base/process.h"
#include "ranks/group.h"
#include "ranks/numa.h"
#include "ranks/sockets.h"

namespace lacuna {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause{100};  // how soon a signal to this process is noticed
constexpr int kAskAfter = 10;                     // after this part of the patience, SIGTERM asks those to end that wait for a failed one

/// A process that serves the run.
struct RankProcess {
  int rank = 0;
  pid_t id = 0;
  bool is_running = true;
  bool was_killed = false;  // by us, as it did not end
  EndedProcess end = {};
};

std::string name_of(const RankProcess& process) {
  return fmt::format("rank {} (pid {})", process.rank, process.id);
}

std::string ending_of(const RankProcess& process) {
  const int signal = process.end.signal;
  return signal != 0 ? fmt::format("was ended by signal {} ({})", signal, strsignal(signal))
                     : fmt::format("ended with exit code {}", process.end.exit_code);
}

/// One start of all processes. The destructor kills those that are left.
class Start {
 public:
  Start(const Launch& launch, int restart) : launch_(launch), restart_(restart) {
    const bool has_first = launch.machine == 0;
    // Closed here once rank 0 has it: when that one ends, nobody waits for an answer any more.
    const Socket listening = has_first ? listen_as(launch.address, launch.port, "--address") : Socket();
    const uint16_t port = has_first ? port_of(listening) : launch.port;
    const std::vector<NumaNode> nodes = launch.binds ? numa_nodes(allowed_cpus()) : std::vector<NumaNode>();
    processes_.reserve(static_cast<size_t>(launch.ranks));
    try {
      for (int local = 0; local < launch.ranks; ++local) start(local, port, listening.get(), nodes);
    } catch (...) {
      kill_all();
      throw;
    }
  }
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;
  ~Start() { kill_all(); }

  /// Returns when all have ended.
  void wait() {
    while (is_any_running()) {
      forward_interrupt();
      if (const std::optional<EndedProcess> end = wait_for_end(kPause)) note(*end);
      if (first_failure_ && Clock::now() - *first_failure_ > launch_.patience / kAskAfter) ask_to_end();
      if (first_end_ && Clock::now() - *first_end_ > launch_.patience) kill_late();
    }
  }

  /// Returns the process at fault, or null if none has failed.
  const RankProcess* culprit() const {
    const RankProcess* found = nullptr;
    const auto blame = [](const RankProcess& process) {  // the higher, the likelier is it the cause
      if (process.end.exit_code == 0) return 0;
      if (process.was_killed) return 1;
      return process.end.exit_code == kLostRankCode ? 2 : 3;
    };
    for (const RankProcess* const process : ended_)
      if (blame(*process) > (found == nullptr ? 0 : blame(*found))) found = process;
    return found;
  }

 private:
  void start(int local, uint16_t port, int listening, const std::vector<NumaNode>& nodes) {
    const int rank = launch_.machine * launch_.ranks + local;
    StartOptions options = {.environment = {{"RANK", std::to_string(rank)},
                                            {"WORLD_SIZE", std::to_string(launch_.machines * launch_.ranks)},
                                            {"LOCAL_RANK", std::to_string(local)},
                                            {"LOCAL_WORLD_SIZE", std::to_string(launch_.ranks)},
                                            {"GROUP_WORLD_SIZE", std::to_string(launch_.machines)},
                                            {"MASTER_ADDR", launch_.address},
                                            {"MASTER_PORT", std::to_string(port)},
                                            {"TORCHELASTIC_RESTART_COUNT", std::to_string(restart_)},
                                            {"TORCHELASTIC_USE_AGENT_STORE", {}},
                                            {"LACUNA_STORE_SOCKET", {}}}};
    if (rank == 0) {
      options.environment.back().value = std::to_string(listening);
      options.passed_file = listening;
    }
    if (nodes.size() > 1) bind(options, local, nodes);
    processes_.push_back({.rank = rank, .id = start_process(launch_.command, options)});
  }

  /// Binds a process to its node, with a thread for each CPU of its share there unless the user has said how many.
  void bind(StartOptions& options, int local, const std::vector<NumaNode>& nodes) const {
    const std::vector<size_t> places = nodes_of_ranks(nodes, launch_.ranks);
    const size_t place = places[static_cast<size_t>(local)];
    options.cpus = nodes[place].cpus;
    options.memory_node = nodes[place].number;
    const size_t neighbors = static_cast<size_t>(std::ranges::count(places, place));
    if (std::getenv("OMP_NUM_THREADS") == nullptr)
      options.environment.push_back({"OMP_NUM_THREADS", std::to_string(std::max<size_t>(1, options.cpus.size() / neighbors))});
  }

  bool is_any_running() const { return std::ranges::any_of(processes_, &RankProcess::is_running); }

  void signal_all(int signal) {
    for (const RankProcess& process : processes_)
      if (process.is_running) kill(process.id, signal);
  }

  void forward_interrupt() {
    if (was_forwarded_ || interrupt_signal() == 0) return;
    was_forwarded_ = true;
    signal_all(interrupt_signal());
  }

  void note(const EndedProcess& end) {
    const auto process = std::ranges::find(processes_, end.id, &RankProcess::id);
    if (process == processes_.end()) return;
    process->is_running = false;
    process->end = end;
    ended_.push_back(&*process);
    if (!first_end_) first_end_ = Clock::now();
    const bool is_as_told = was_forwarded_ && end.exit_code == 128 + interrupt_signal();
    if (end.exit_code != 0 && !is_as_told && !first_failure_) first_failure_ = Clock::now();
  }

  /// Ends those that have not come so far that they notice a failure by themselves. A second signal would end one that is saving.
  void ask_to_end() {
    if (!was_forwarded_ && !std::exchange(were_asked_, true)) signal_all(SIGTERM);
  }

  void kill_late() {
    for (RankProcess& process : processes_) {
      if (!process.is_running || process.was_killed) continue;
      log_warning("{} has not ended {} s after another one, and is killed", name_of(process), launch_.patience.count());
      process.was_killed = true;
      kill(process.id, SIGKILL);
    }
  }

  void kill_all() {
    signal_all(SIGKILL);
    while (is_any_running())
      if (const std::optional<EndedProcess> end = wait_for_end(kPause)) note(*end);
  }

  const Launch& launch_;
  int restart_;
  std::vector<RankProcess> processes_;
  std::vector<const RankProcess*> ended_;  // in the order of their ends
  std::optional<Clock::time_point> first_end_, first_failure_;
  bool was_forwarded_ = false, were_asked_ = false;
};

void say_what_is_bound(const Launch& launch) {
  const std::vector<NumaNode> nodes = numa_nodes(allowed_cpus());
  if (nodes.size() < 2) return log_info("--bind numa: this machine has one NUMA node, and nothing is bound");
  log_info("--bind numa: {} processes on {} NUMA nodes, each with the CPUs and the memory of its own", launch.ranks, nodes.size());
}

}  // namespace

int launch(const Launch& launch) {
  if (launch.binds) say_what_is_bound(launch);
  for (int restart = 0;; ++restart) {
    Start start(launch, restart);
    start.wait();
    const RankProcess* const culprit = start.culprit();
    if (culprit == nullptr) return 0;
    const bool is_interrupted = interrupt_signal() != 0;
    const bool may_help = culprit->end.signal != 0 || culprit->end.exit_code == kLostRankCode;
    if (is_interrupted || !may_help || restart == launch.restarts) {
      if (!is_interrupted) write_log_line(LogLevel::kError, fmt::format("{} {}", name_of(*culprit), ending_of(*culprit)));
      return culprit->end.exit_code;
    }
    log_warning("{} {}: all ranks are started again (restart {} of {})", name_of(*culprit), ending_of(*culprit), restart + 1,
                launch.restarts);
  }
}

}  // namespace lacuna
