#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ranks/link.h"
#include "ranks/sockets.h"

namespace lacuna {

/// Connections between rank 0 and each other rank while they come together: when a process ends before all are joined, the system closes
/// its connection, and all others end within moments, too. A Watch takes its place once the group is there.
///
/// Its functions may be called by several threads.
class Lobby {
 public:
  Lobby(int rank, int size) : rank_(rank), size_(size) {}

  /// Listens for the other ranks, at rank 0, at a numeric address; "" = at all of this machine. Returns what enter() needs. `name` is
  /// "rank 0 (node1, pid 4711)". Throws MachineError.
  std::string open(const std::string& address, const std::string& name);
  /// Connects another rank, of this name, with rank 0, which is reached at `address`. Throws LostRankError if it does not answer.
  void enter(const std::string& invitation, const std::string& address, const std::string& name);
  /// Returns true once this rank has opened the lobby, or entered it.
  bool is_entered() const;

  /// Looks whether all are well. Throws LostRankError, which says who is gone and why, once one is.
  void look();
  /// Says that this rank is connected with all others, and returns once all are. Throws as look() does, or after `patience`.
  void join(std::chrono::milliseconds patience);
  /// Says why this rank gives up; nothing if all find the reason by themselves.
  void leave(const std::string& why = {});
  /// Returns true once look() has thrown: what this rank waits for will not come.
  bool is_closed() const { return is_closed_; }

 private:
  /// A connection to another rank.
  struct Guest {
    Link link;
    int rank = -1;  // -1 = it has not said
    std::string name = {};
    bool has_joined = false;
  };

  void accept();
  void read(Guest& guest);
  void obey(Guest& guest, const std::string& line);
  [[noreturn]] void close(const std::string& why);
  void say(const std::string& line);
  bool have_all_joined() const;

  const int rank_, size_;
  std::atomic<bool> is_closed_ = false;
  mutable std::mutex mutex_;  // of what follows
  std::string id_;            // of the lobby; known to those whom the store has told it
  Socket listening_;          // at rank 0
  std::vector<Guest> guests_;
  bool is_entered_ = false, has_joined_ = false, are_all_joined_ = false;
};

}  // namespace lacuna
