#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace lacuna {

/// What a claim on a part says of the worker that made it.
struct ClaimState {
  bool is_there = false;
  bool is_stale = false;  ///< anyone may take it over: its process has ended, or has not touched it for the lease
  std::string host;       ///< empty if the worker ended before it wrote its name
  int64_t process = 0;
  std::string start;        ///< when the worker claimed the part, by its own clock
  double idle_seconds = 0;  ///< since the claim was touched, by the file system's clock

  /// Returns "node7, process 4711".
  std::string holder() const;
};

/// Reads a claim. `now` is the file system's time (FolderClock), `lease` in seconds. That a process has ended is seen on its own host
/// alone.
ClaimState look_at_claim(const std::filesystem::path& file, double now, double lease);

/// A part that this process works on, shown to others by a file that it touches until it is done.
class Claim {
 public:
  /// Makes the file, or takes over a stale one. Returns null if another process has it. Throws MachineError if it cannot be made.
  static std::unique_ptr<Claim> try_take(const std::filesystem::path& file, double now, double lease);
  /// Removes the file, if it is still this one's.
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  /// Returns false once another worker has taken the part over, as this one was stopped for longer than the lease, or has removed the file.
  bool is_held() const;

 private:
  Claim(std::filesystem::path path, int file, double lease);
  void touch_until_end(std::chrono::duration<double> pause);

  std::filesystem::path path_;
  int file_;
  std::mutex mutex_;
  std::condition_variable end_;
  bool is_ending_ = false;
  std::thread toucher_;
};

}  // namespace lacuna
