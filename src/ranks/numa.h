#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lacuna {

/// CPUs that are near to one part of the memory: a NUMA node, often a socket.
struct NumaNode {
  int number = 0;
  std::vector<int> cpus;
};

/// Returns the numbers of a list of the kernel: "0-3,8" is 0, 1, 2, 3, 8.
std::vector<int> cpus_of_list(const std::string& list);

/// Returns the nodes of this machine, each with those of its CPUs that are `allowed`; nodes without any are left out.
std::vector<NumaNode> numa_nodes(const std::vector<int>& allowed, const std::filesystem::path& folder = "/sys/devices/system/node");

/// Returns the CPUs that this process may run on.
std::vector<int> allowed_cpus();

/// Returns the place of each of `ranks` processes: an index into `nodes`, so that neighbors share one and all have about as many.
std::vector<size_t> nodes_of_ranks(const std::vector<NumaNode>& nodes, int ranks);

}  // namespace lacuna
