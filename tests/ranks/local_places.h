#pragma once

#include <ATen/Parallel.h>

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "ranks/gloo_group.h"
#include "ranks/place.h"
#include "ranks/sockets.h"
#include "ranks/watch.h"

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

/// Calls `work` on ranks at once, each a thread with connections of its own to the others, and watched. Returns what each has thrown.
inline std::vector<std::exception_ptr> run_over_sockets(int number, const std::function<void(Group&)>& work) {
  std::vector<std::exception_ptr> thrown(static_cast<size_t>(number));
  std::vector<std::thread> threads;
  threads.reserve(thrown.size());
  for (const RankPlace& place : local_places(number))
    threads.emplace_back([&thrown, &work, place] {
      at::set_num_threads(1);
      try {
        const std::unique_ptr<Group> group = join(place);
        const Watch watch(*group);
        work(*group);
        group->gather_to_all("end");
      } catch (...) {
        thrown[static_cast<size_t>(place.rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

}  // namespace lacuna
