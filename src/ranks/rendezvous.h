#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "ranks/group.h"
#include "ranks/lobby.h"
#include "ranks/place.h"

/// How ranks find each other: by the store of rank 0, or of torchrun's agent.
namespace lacuna {

/// What a rank learns when all are there.
struct Rendezvous {
  c10::intrusive_ptr<c10d::Store> store;
  std::vector<Member> members;  ///< of all ranks
  std::string start_id;         ///< chosen by rank 0
};

/// Returns when all ranks have come to the store and into the lobby. Throws LostRankError, which names who is missing, after `timeout`, or
/// once the lobby is closed; UsageError where ranks contradict each other; MachineError where rank 0 cannot listen.
Rendezvous meet(const RankPlace& place, std::chrono::milliseconds timeout, Lobby& lobby);

/// Returns the message of an error of LibTorch without its traces and file names.
std::string plain_message(const std::exception& error);

}  // namespace lacuna
