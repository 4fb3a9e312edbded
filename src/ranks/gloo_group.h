#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <memory>

#include "ranks/group.h"
#include "ranks/place.h"

namespace c10d {
class Store;
}

namespace lacuna {

/// How long ranks wait for each other.
struct JoinOptions {
  std::chrono::milliseconds joining = std::chrono::minutes(5);        ///< for all to have started
  std::chrono::milliseconds operation = std::chrono::hours(20 * 24);  ///< for a message; long, as a watch finds out who is lost (watch.h)
};

/// Returns the group of all ranks, once all are there: connections between each two of them, by Gloo, from the address by which this
/// machine reaches rank 0's. A single process gets an AloneGroup, which opens no socket. Throws LostRankError, which names who is
/// missing, UsageError where ranks contradict each other, MachineError where rank 0 cannot listen.
std::unique_ptr<Group> join(const RankPlace& place, const JoinOptions& options = {});

/// Returns the store by which the ranks of a group met that join() has made. Throws std::logic_error for another group.
c10::intrusive_ptr<c10d::Store> store_of(const Group& group);

}  // namespace lacuna
