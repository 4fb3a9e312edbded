#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace lacuna {

/// What a device was given to do. On a GPU a launch costs the host some microseconds however little it does, and a synchronization waits
/// until all launches before it are done. Kernels that are emulated on the CPU count as on a GPU.
struct DeviceWork {
  int64_t launches = 0;          ///< kernels: ours, and those of LibTorch's operators
  int64_t synchronizations = 0;  ///< calls that wait for the device
  int64_t allocations = 0;       ///< requests for memory, most of which LibTorch's allocator serves from what it has
  int64_t allocated_bytes = 0;
  std::map<std::string, int64_t> of_operators;  ///< the launches of each of LibTorch's operators
  int64_t copies_there = 0, bytes_there = 0;    ///< of lists to the device (base/device.h)
  int64_t copies_back = 0, bytes_back = 0;      ///< to the host, each of which waits
};

/// Counts the work of the thread that constructs it, and of the backward passes it calls, while it lives. A thread has at most one.
class DeviceWorkCounter {
 public:
  DeviceWorkCounter();
  ~DeviceWorkCounter();
  DeviceWorkCounter(const DeviceWorkCounter&) = delete;
  DeviceWorkCounter& operator=(const DeviceWorkCounter&) = delete;

  /// Returns what was counted since construction.
  DeviceWork work() const;

 private:
  friend class CountedAsOne;
  class Observer;
  class Registration;
  std::unique_ptr<Registration> registration_;
};

/// Counts as a single launch what LibTorch's operators do in its lifetime: an emulation of one operator of a GPU by several.
class CountedAsOne {
 public:
  CountedAsOne();
  ~CountedAsOne();
  CountedAsOne(const CountedAsOne&) = delete;
  CountedAsOne& operator=(const CountedAsOne&) = delete;
};

}  // namespace lacuna
