#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/interrupt.h"
#include "cli/command_line.h"
#include "cli/verb.h"
#include "ranks/launcher.h"

namespace lacuna {
namespace {

constexpr uint16_t kUsualPort = 29500;  // torchrun's
constexpr const char* kUsage = "lacuna launch -n 4 -- train -c base.yaml";

struct LaunchFlags {
  int64_t ranks = 0, machines = 1, machine = 0, restarts = 0;
  std::string address, binding = "none";

  void declare(CLI::App& app) {
    app.add_option("-n", ranks, "Processes on this machine, and on each other one")->required()->check(whole_number_from(1, 4096));
    app.add_option("--nodes", machines, "Machines; the same command runs on each, with a --node-rank of its own")
        ->check(whole_number_from(1, 4096));
    app.add_option("--node-rank", machine, "Which of them this is, from 0")->check(whole_number_from(0, 4095));
    app.add_option("--address", address, "HOST[:PORT] of machine 0, for all; port 29500 unless given")
        ->default_str("this machine, a free port");
    app.add_option("--bind", binding, "numa: each process keeps to the CPUs and the memory of one NUMA node, in equal shares; none")
        ->check(CLI::IsMember({"none", "numa"}));
    app.add_option("--restarts", restarts, "Times that all processes are started again after one of them was lost")
        ->check(whole_number_from(0, 1'000'000));
    app.footer(
        "The words behind -- are a verb of lacuna with its flags; train and bench ranks run on several processes. Each has --threads, or "
        "its share of the "
        "cores. Ctrl-C and SIGTERM reach all of them. The exit code is that of the process at fault.");
  }

  /// Splits --address; [::1]:29500 is an IPv6 address with a port.
  void read_address(Launch& launch) const {
    launch.address = address;
    launch.port = kUsualPort;
    const size_t colon = address.rfind(':');
    const bool has_port = colon != std::string::npos && (address.find(':') == colon || address[colon - 1] == ']');
    if (has_port) {
      const char* const end = address.data() + address.size();
      const auto [rest, error] = std::from_chars(address.data() + colon + 1, end, launch.port);
      if (error != std::errc() || rest != end || launch.port == 0)
        throw UsageError("--address is \"" + address + "\"; expected HOST or HOST:PORT, with a port from 1 to 65535");
      launch.address.resize(colon);
    }
    if (launch.address.starts_with('[') && launch.address.ends_with(']'))
      launch.address = launch.address.substr(1, launch.address.size() - 2);
    if (launch.address.empty()) throw UsageError("--address is \"" + address + "\"; expected HOST or HOST:PORT");
  }

  Launch launch() const {
    if (machines > 1 && address.empty())
      throw UsageError("--nodes is " + std::to_string(machines) + ", and --address is not given: the machine of --node-rank 0, for all");
    if (machine >= machines)
      throw UsageError("--node-rank is " + std::to_string(machine) + "; expected 0 to " + std::to_string(machines - 1) +
                       ", as --nodes is " + std::to_string(machines));
    Launch launch = {.command = {},
                     .ranks = static_cast<int>(ranks),
                     .machines = static_cast<int>(machines),
                     .machine = static_cast<int>(machine),
                     .restarts = static_cast<int>(restarts),
                     .binds = binding == "numa"};
    if (!address.empty()) read_address(launch);
    return launch;
  }
};

/// Throws UsageError unless several processes may serve the command.
void require_verb_of_ranks(const std::vector<std::string>& words) {
  if (words.empty()) throw UsageError(std::string("no verb is behind --; expected, for example, ") + kUsage);
  const bool measures = words.size() > 1 && words[0] == "bench" && words[1] == "ranks";
  if (words[0] != "train" && !measures)
    throw UsageError(
        "\"" + words[0] +
        "\" is behind --; expected train, the verb that several processes may serve, or bench ranks, without \"lacuna\": " + kUsage);
}

int run_launch(const std::vector<std::string>& arguments) {
  CommandLine app("Starts several processes that train one model, on one machine or on several.", "lacuna launch");
  LaunchFlags flags;
  flags.declare(app);
  const auto dashes = std::ranges::find(arguments, "--");
  const auto asks_for_help = [](const std::string& word) { return word == "--help" || word == "-h" || word == kMarkdownHelp; };
  if (dashes == arguments.end() && std::ranges::none_of(arguments, asks_for_help))
    throw UsageError(std::string("-- is missing before the verb that is started: ") + kUsage);
  if (!app.read({arguments.begin(), dashes})) return 0;
  const std::vector<std::string> words(dashes + 1, arguments.end());
  require_verb_of_ranks(words);
  Launch plan = flags.launch();
  plan.command = {std::filesystem::read_symlink("/proc/self/exe").string()};
  plan.command.insert(plan.command.end(), words.begin(), words.end());
  handle_interrupts();
  return launch(plan);
}

}  // namespace

Verb launch_verb() {
  return {"launch", "train one model with several processes, on one machine or on several", run_launch};
}

}  // namespace lacuna
