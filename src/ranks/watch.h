#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ranks/group.h"

namespace lacuna {

/// How a rank watches over the others.
struct WatchOptions {
  std::chrono::milliseconds timeout = std::chrono::minutes(1);  ///< a rank that is silent for so long is lost
  std::function<void()> before_end = {};  ///< called before this process ends because another rank was lost; may take 30 s
};

/// A thread that hears from the other ranks every second, also while this one computes or waits for a message, and ends this process, by
/// exit code 75, when one of them is lost: it has ended without a word, it has failed, or it is silent for too long. The first rank of
/// each machine writes one line to the log: which rank, on which machine, which process, where it was, why.
///
/// Ranks connect to rank 0, which passes on what it learns; each connection begins with the start's id. A single process has no thread.
class Watch {
 public:
  /// Connects to rank 0. Collective. Throws LostRankError if that fails.
  explicit Watch(Group& group, WatchOptions options = {});
  /// Says goodbye, so that the others do not take this rank for lost.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Changes how long a rank may be silent.
  void set_timeout(std::chrono::milliseconds timeout);
  /// Says where this rank is: `phase` is a literal, such as "backward".
  void at(int64_t step, const char* phase);
  /// Tells the others why this process is about to end; they end, too, with this message.
  void say_why_we_leave(const std::string& message);
  /// Ends this process because a message to another rank, or from it, has failed, with the reason that the watch finds; the error's own
  /// message if it finds none. Throws the error if there is a single rank.
  [[noreturn]] void end(const LostRankError& error);

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

/// Writes the reason why this process ends to the file that torchrun gives it (TORCHELASTIC_ERROR_FILE), if it does.
void write_torch_error_file(const std::string& message);

}  // namespace lacuna
