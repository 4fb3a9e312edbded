#include "ranks/group.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <random>
#include <stdexcept>

#include "base/resources.h"

namespace lacuna {

Member this_member() {
  return {.host = host_name(), .pid = getpid()};
}

std::string new_start_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

std::string Group::name_of(int rank) const {
  if (members_.empty()) return fmt::format("rank {}", rank);
  const Member& member = members_.at(static_cast<size_t>(rank));
  return fmt::format("rank {} ({}, pid {})", rank, member.host, member.pid);
}

AloneGroup::AloneGroup() : Group(0, 1, {this_member()}, new_start_id()) {}

std::unique_ptr<Transfer> AloneGroup::exchange(const Messages& /*sent*/, const Messages& /*received*/, int /*tag*/) {
  throw std::logic_error("a single rank has nobody to exchange messages with");
}

Group& no_group() {
  static AloneGroup alone;
  return alone;
}

}  // namespace lacuna
