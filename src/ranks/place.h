#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace lacuna {

inline constexpr int kMostRanks = 4096;  ///< of a run: more are a slip, not a cluster

/// Where this process stands among those that serve one run, as whoever started it says.
struct RankPlace {
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  ///< among the processes on this machine
  std::string address = {};            ///< of the machine of rank 0, by name or number; empty for a single process
  uint16_t port = 0;                   ///< where rank 0, or torchrun's agent, listens there
  int64_t restart = 0;                 ///< how often the launcher has started the processes anew
  bool has_agent = false;              ///< torchrun's agent listens at the port, and goes on to do so over restarts
  int listening_socket = -1;           ///< a descriptor that listens at the port already, for rank 0 of `lacuna launch`
  std::optional<int> nodes = {};       ///< machines, where that is known
  std::string told_by = {};            ///< the variables that said so: "RANK and WORLD_SIZE"; empty if none did

  bool is_alone() const { return size == 1; }
};

/// Reads the environment of the first launcher that has set one: torchrun, `lacuna launch` and shell scripts (RANK, WORLD_SIZE), Open MPI
/// (OMPI_COMM_WORLD_*), MPICH and Intel MPI (PMI_*), Slurm inside of a step of several tasks (SLURM_*). MASTER_ADDR and MASTER_PORT go
/// before what is derived from theirs. Throws UsageError, which names the variables, for an environment that is half set or contradicts
/// itself.
RankPlace place_from_environment();

/// Reads variables by `variable`, which returns null for one that is not set, instead of the environment.
RankPlace place_from(const std::function<const char*(const char*)>& variable);

/// Returns the first name of a Slurm list of hosts: "node07" of "node[07-09,12],gpu1".
std::string first_host(const std::string& slurm_list);

}  // namespace lacuna
