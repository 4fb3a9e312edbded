#include "ranks/numa.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>

namespace lacuna {

std::vector<int> cpus_of_list(const std::string& list) {
  std::vector<int> cpus;
  const char* position = list.data();
  const char* const end = position + list.size();
  while (position < end) {
    int first = 0;
    auto [next, error] = std::from_chars(position, end, first);
    if (error != std::errc()) break;
    int last = first;
    if (next < end && *next == '-') next = std::from_chars(next + 1, end, last).ptr;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    position = next + 1;  // behind the comma
  }
  return cpus;
}

std::vector<NumaNode> numa_nodes(const std::vector<int>& allowed, const std::filesystem::path& folder) {
  std::vector<NumaNode> nodes;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    NumaNode node;
    const char* const end = name.data() + name.size();
    if (!name.starts_with("node") || std::from_chars(name.data() + 4, end, node.number).ptr != end) continue;
    std::string list;
    std::ifstream(entry.path() / "cpulist") >> list;
    for (const int cpu : cpus_of_list(list))
      if (std::ranges::find(allowed, cpu) != allowed.end()) node.cpus.push_back(cpu);
    if (!node.cpus.empty()) nodes.push_back(node);
  }
  std::ranges::sort(nodes, {}, &NumaNode::number);
  return nodes;
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

std::vector<size_t> nodes_of_ranks(const std::vector<NumaNode>& nodes, int ranks) {
  std::vector<size_t> places;
  for (size_t rank = 0; rank < static_cast<size_t>(ranks); ++rank) places.push_back(rank * nodes.size() / static_cast<size_t>(ranks));
  return places;
}

}  // namespace lacuna
