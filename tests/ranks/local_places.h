#pragma once

#include <vector>

#include "ranks/place.h"
#include "ranks/sockets.h"

namespace lacuna {

/// Returns the places of ranks on this machine, of which rank 0 has a socket that listens.
inline std::vector<RankPlace> local_places(int size) {
  Socket listening = listen_at("127.0.0.1", 0);
  std::vector<RankPlace> places;
  for (int rank = 0; rank < size; ++rank)
    places.push_back(
        {.rank = rank, .size = size, .local_rank = rank, .local_size = size, .address = "127.0.0.1", .port = port_of(listening)});
  places[0].listening_socket = listening.release();
  return places;
}

}  // namespace lacuna
