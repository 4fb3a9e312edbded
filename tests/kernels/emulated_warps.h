#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/gpu/all_kernels.h"
#include "kernels/gpu/started.h"
#include "turns.h"

/// The kernels of kernels/gpu/ on the CPU: the threads of a block take turns on one thread of the machine.
namespace lacuna::gpu {

/// What the threads of an emulated block share.
struct Meeting {
  Turns turns;
  Turns::Barrier all;
  std::vector<Turns::Barrier> warps;
  std::vector<uint64_t> given;  // by each thread to the others of its warp
  std::vector<uint64_t> memory;

  void prepare(int num_warps, int shared_bytes) {
    all.size = num_warps * kLanes;
    warps.assign(static_cast<size_t>(num_warps), {kLanes, {}});
    given.resize(static_cast<size_t>(num_warps) * kLanes);
    memory.assign(static_cast<size_t>(shared_bytes) / sizeof(uint64_t) + 2, 0);
  }
};

/// A thread's view of an emulated block: the counterpart of WarpBlock.
class EmulatedWarpBlock {
 public:
  EmulatedWarpBlock(Meeting& meeting, int thread, int64_t index, int64_t column_index)
      : meeting_(&meeting), thread_(thread), index_(index), column_index_(column_index) {}

  int64_t index() const { return index_; }
  int64_t column_index() const { return column_index_; }
  int lane() const { return thread_ % kLanes; }
  int warp() const { return thread_ / kLanes; }
  template <class X>
  X exchanged(X x, int distance) const {
    static_assert(sizeof(X) <= sizeof(uint64_t));
    std::memcpy(given(lane()), &x, sizeof(X));
    sync_warp();
    std::memcpy(&x, given(lane() ^ distance), sizeof(X));
    sync_warp();
    return x;
  }
  unsigned ballot(bool holds) const {
    *given(lane()) = holds ? 1 : 0;
    sync_warp();
    unsigned all = 0;
    for (int i = 0; i < kLanes; ++i) all |= static_cast<unsigned>(*given(i)) << i;
    sync_warp();
    return all;
  }
  int32_t add(int32_t* sum, int32_t value) const { return (*sum += value) - value; }
  void sync() const { meeting_->turns.wait(meeting_->all); }
  unsigned char* shared() const {
    auto address = reinterpret_cast<uintptr_t>(meeting_->memory.data());
    return reinterpret_cast<unsigned char*>((address + 15) / 16 * 16);
  }

 private:
  uint64_t* given(int of_lane) const { return meeting_->given.data() + warp() * kLanes + of_lane; }
  void sync_warp() const { meeting_->turns.wait(meeting_->warps[static_cast<size_t>(warp())]); }

  Meeting* meeting_;
  int thread_;
  int64_t index_, column_index_;
};

/// Emulates a kernel, block by block.
struct EmulatedLauncher {
  template <class Kernel>
  static const char* start(const typename Kernel::Args& args, int64_t rows, const Grid& grid, void* /*stream*/) {
    if (grid.rows == 0 || grid.columns == 0) return nullptr;
    count_launch();
    static thread_local Meeting meeting;
    for (int64_t index = 0; index < grid.rows; ++index)
      for (int64_t column = 0; column < grid.columns; ++column) {
        meeting.prepare(Kernel::kWarps, Kernel::kSharedBytes);
        meeting.turns.run(Kernel::kWarps * kLanes,
                          [&](int thread) { Kernel::run(EmulatedWarpBlock(meeting, thread, index, column), args, rows); });
      }
    return nullptr;
  }
};

}  // namespace lacuna::gpu
