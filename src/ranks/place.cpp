#include "ranks/place.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <cstdlib>
#include <limits>

#include "base/error.h"

namespace lacuna {
namespace {

constexpr uint16_t kUsualPort = 29500;  // torchrun's

/// Variables of the environment, of which those that are empty count as not set.
class Variables {
 public:
  explicit Variables(const std::function<const char*(const char*)>& read) : read_(read) {}

  bool has(const char* name) const { return !text(name).empty(); }

  std::string text(const char* name) const {
    const char* const value = read_(name);
    return value == nullptr ? "" : value;
  }

  /// Returns a whole number, or `otherwise` where the variable is not set. Throws UsageError if it is no number from `lowest` to `highest`.
  int64_t number(const char* name, int64_t lowest, int64_t highest, int64_t otherwise) const {
    const std::string value = text(name);
    if (value.empty()) return otherwise;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < lowest || number > highest)
      throw UsageError(fmt::format("the environment says {}={}; expected a whole number from {} to {}", name, value, lowest, highest));
    return number;
  }

 private:
  const std::function<const char*(const char*)>& read_;
};

/// The names by which a launcher tells a process its place.
struct Names {
  const char *rank, *size, *local_rank, *local_size;
};

constexpr Names kTorch = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Names kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Names kPmi = {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

bool is_this_machine(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

/// Reads rank and size, which belong together: one without the other is an error, but for a size of 1.
void read_rank_and_size(const Variables& variables, const Names& names, RankPlace& place) {
  const bool has_rank = variables.has(names.rank), has_size = variables.has(names.size);
  place.size = static_cast<int>(variables.number(names.size, 1, kMostRanks, 1));
  if (has_rank != has_size && (has_rank || place.size > 1))
    throw UsageError(
        fmt::format("the environment says {0}={1}, and {2} is not set: a process needs both, {3} from 0 to {4} - 1. Set {2} "
                    "too, or unset {0} where one process works",
                    has_rank ? names.rank : names.size, variables.text(has_rank ? names.rank : names.size),
                    has_rank ? names.size : names.rank, names.rank, names.size));
  place.rank = static_cast<int>(variables.number(names.rank, 0, kMostRanks, 0));
  if (place.rank >= place.size)
    throw UsageError(fmt::format("the environment says {}={} and {}={}; expected a rank from 0 to {}", names.rank, place.rank, names.size,
                                 place.size, place.size - 1));
  place.told_by = fmt::format("{} and {}", names.rank, names.size);
}

/// Reads the place on the machine. Where nobody says it, all ranks are on one machine if rank 0's address is that of "this machine", and
/// else each has one of its own.
void read_local(const Variables& variables, const Names& names, RankPlace& place) {
  const bool has_rank = variables.has(names.local_rank), has_size = variables.has(names.local_size);
  if (has_rank != has_size)
    throw UsageError(
        fmt::format("the environment says {0}={1}, and {2} is not set. Set both or neither: the place among the processes on "
                    "this machine, and their number",
                    has_rank ? names.local_rank : names.local_size, variables.text(has_rank ? names.local_rank : names.local_size),
                    has_rank ? names.local_size : names.local_rank));
  const bool is_one_machine = is_this_machine(place.address) || (place.address.empty() && !has_rank);
  place.local_size = static_cast<int>(variables.number(names.local_size, 1, place.size, is_one_machine ? place.size : 1));
  place.local_rank = static_cast<int>(variables.number(names.local_rank, 0, kMostRanks, is_one_machine ? place.rank : 0));
  if (place.local_rank >= place.local_size)
    throw UsageError(fmt::format("the environment says {}={} and {}={}; expected a place from 0 to {}", names.local_rank, place.local_rank,
                                 names.local_size, place.local_size, place.local_size - 1));
}

/// Reads MASTER_ADDR and MASTER_PORT.
void read_address(const Variables& variables, RankPlace& place) {
  place.address = variables.text("MASTER_ADDR");
  place.port = static_cast<uint16_t>(variables.number("MASTER_PORT", 1, std::numeric_limits<uint16_t>::max(), place.port));
}

RankPlace torch_place(const Variables& variables) {
  RankPlace place;
  read_rank_and_size(variables, kTorch, place);
  read_address(variables, place);
  if (place.size == 1) return place;
  if (place.address.empty() || place.port == 0)
    throw UsageError(
        fmt::format("the environment says WORLD_SIZE={}, and {} is not set: the ranks find each other by MASTER_ADDR, the "
                    "machine of rank 0, and MASTER_PORT, a free port there",
                    place.size, place.address.empty() ? "MASTER_ADDR" : "MASTER_PORT"));
  read_local(variables, kTorch, place);
  place.has_agent = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  place.restart = variables.number("TORCHELASTIC_RESTART_COUNT", 0, std::numeric_limits<int32_t>::max(), 0);
  place.listening_socket = static_cast<int>(variables.number("LACUNA_STORE_SOCKET", 0, std::numeric_limits<int>::max(), -1));
  if (variables.has("GROUP_WORLD_SIZE")) place.nodes = static_cast<int>(variables.number("GROUP_WORLD_SIZE", 1, place.size, 1));
  return place;
}

RankPlace mpi_place(const Variables& variables, const Names& names, const char* launcher) {
  RankPlace place = {.port = kUsualPort};
  read_rank_and_size(variables, names, place);
  read_address(variables, place);
  if (place.size == 1) return place;
  read_local(variables, names, place);
  const bool is_one_machine = place.local_size == place.size;
  if (place.address.empty() && !is_one_machine)
    throw UsageError(
        fmt::format("{} has started processes on several machines, and MASTER_ADDR is not set: set it to the name or address "
                    "of the machine of rank 0, for all of them",
                    launcher));
  if (place.address.empty()) place.address = "127.0.0.1";
  if (is_one_machine) place.nodes = 1;
  return place;
}

/// Returns the number that belongs to node `node` in Slurm's "2(x3),1": two tasks on each of three nodes, one on the next. 1 if it has
/// none.
int tasks_on_node(const std::string& tasks_per_node, int64_t node) {
  const char* position = tasks_per_node.data();
  const char* const end = position + tasks_per_node.size();
  while (position < end) {
    int tasks = 0, times = 1;
    position = std::from_chars(position, end, tasks).ptr;
    if (end - position > 2 && position[0] == '(' && position[1] == 'x') position = std::from_chars(position + 2, end, times).ptr + 1;
    if (node < times) return tasks;
    node -= times;
    ++position;  // the comma
  }
  return 1;
}

/// Returns a port for the job below those that the system hands out, so that jobs on one machine seldom meet.
uint16_t port_of_job(int64_t job, int64_t step) {
  constexpr int64_t kFirst = 15000, kCount = 10000;
  return static_cast<uint16_t>(kFirst + (job * 10 + step) % kCount);
}

RankPlace slurm_place(const Variables& variables) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  RankPlace place;
  read_rank_and_size(variables, {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", nullptr, nullptr}, place);
  place.port = port_of_job(variables.number("SLURM_JOB_ID", 0, kMost, 0), variables.number("SLURM_STEP_ID", 0, kMost, 0));
  read_address(variables, place);
  if (place.address.empty()) place.address = first_host(variables.text("SLURM_STEP_NODELIST"));
  if (place.address.empty())
    throw UsageError(
        "Slurm has started several tasks, and neither SLURM_STEP_NODELIST nor MASTER_ADDR is set: set MASTER_ADDR to the machine "
        "of rank 0");
  place.local_rank = static_cast<int>(variables.number("SLURM_LOCALID", 0, kMostRanks, 0));
  place.local_size = tasks_on_node(variables.text("SLURM_STEP_TASKS_PER_NODE"), variables.number("SLURM_NODEID", 0, kMostRanks, 0));
  if (place.local_rank >= place.local_size)
    throw UsageError(fmt::format("the environment says SLURM_LOCALID={} and SLURM_STEP_TASKS_PER_NODE={}, which do not fit together",
                                 place.local_rank, variables.text("SLURM_STEP_TASKS_PER_NODE")));
  if (variables.has("SLURM_STEP_NUM_NODES")) place.nodes = static_cast<int>(variables.number("SLURM_STEP_NUM_NODES", 1, place.size, 1));
  return place;
}

/// Returns true in a step of several tasks. In the script of sbatch, one process, SLURM_NTASKS and SLURM_PROCID are set all the same.
bool is_in_slurm_step(const Variables& variables) {
  return variables.has("SLURM_STEP_ID") && variables.number("SLURM_STEP_NUM_TASKS", 1, kMostRanks, 1) > 1;
}

}  // namespace

std::string first_host(const std::string& slurm_list) {
  const size_t bracket = slurm_list.find_first_of("[,");
  if (bracket == std::string::npos || slurm_list[bracket] == ',') return slurm_list.substr(0, bracket);
  const size_t close = slurm_list.find(']', bracket), end = slurm_list.find_first_of("-,]", bracket);
  if (close == std::string::npos) return "";
  const size_t rest = slurm_list.find(',', close);
  return slurm_list.substr(0, bracket) + slurm_list.substr(bracket + 1, end - bracket - 1) +
         first_host(slurm_list.substr(close + 1, rest == std::string::npos ? rest : rest - close - 1));
}

RankPlace place_from(const std::function<const char*(const char*)>& variable) {
  const Variables variables(variable);
  if (variables.has(kTorch.rank) || variables.has(kTorch.size)) return torch_place(variables);
  if (variables.has(kOpenMpi.rank) || variables.has(kOpenMpi.size)) return mpi_place(variables, kOpenMpi, "mpirun (Open MPI)");
  if (variables.has(kPmi.rank) || variables.has(kPmi.size)) return mpi_place(variables, kPmi, "mpirun (MPICH)");
  if (is_in_slurm_step(variables)) return slurm_place(variables);
  return {};
}

RankPlace place_from_environment() {
  return place_from([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace lacuna
