#pragma once

#include <ucontext.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "fibers.h"
#include "kernels/gpu/all_kernels.h"
#include "kernels/gpu/started.h"

/// The kernels of kernels/gpu/ on the CPU: the threads of a block take turns on one thread of the machine.
namespace lacuna::gpu {

/// Threads that take turns. One runs until it has to wait for others; then one that need not wait goes on, chosen by a fixed pseudo-random
/// sequence. So a missing barrier shows, and the result does not depend on the machine's load.
class Turns {
 public:
  struct Barrier {
    int size = 0;
    std::vector<int> waiting;
  };

  /// Runs work(i) on threads 0 to `threads` until all have ended.
  void run(int threads, const std::function<void(int)>& work) {
    work_ = &work;
    runnable_.clear();
    if (contexts_.size() < static_cast<size_t>(threads)) {
      contexts_.resize(static_cast<size_t>(threads));
      stacks_.resize(static_cast<size_t>(threads));
    }
    for (int i = 0; i < threads; ++i) {
      ucontext_t& context = contexts_[static_cast<size_t>(i)];
      std::vector<unsigned char>& stack = stacks_[static_cast<size_t>(i)];
      stack.resize(kStackBytes);
      getcontext(&context);
      context.uc_stack.ss_sp = stack.data();
      context.uc_stack.ss_size = stack.size();
      context.uc_link = nullptr;
      makecontext(&context, reinterpret_cast<void (*)()>(start), 1, i);
      runnable_.push_back(i);
    }
    fibers_.prepare(static_cast<size_t>(threads));
    active_ = this;
    go_on(caller_);
  }

  /// The current thread waits until `barrier.size` threads do.
  void wait(Barrier& barrier) {
    if (static_cast<int>(barrier.waiting.size()) + 1 == barrier.size) {
      runnable_.insert(runnable_.end(), barrier.waiting.begin(), barrier.waiting.end());
      barrier.waiting.clear();
      return;
    }
    barrier.waiting.push_back(current_);
    go_on(contexts_[static_cast<size_t>(current_)]);
  }

 private:
  static constexpr size_t kStackBytes = 64 * 1024;

  static void start(int thread) {
    (*active_->work_)(thread);
    active_->go_on(active_->ended_);  // does not return
  }

  /// Leaves a thread for one that need not wait, or for the caller of run() if all have ended.
  void go_on(ucontext_t& left) {
    ucontext_t* next = &caller_;
    if (!runnable_.empty()) {
      random_ = random_ * 1664525u + 1013904223u;
      const size_t place = (random_ >> 8) % runnable_.size();
      current_ = runnable_[place];
      runnable_[place] = runnable_.back();
      runnable_.pop_back();
      next = &contexts_[static_cast<size_t>(current_)];
      fibers_.go_to(current_);
    } else {
      fibers_.go_to_caller();
    }
    swapcontext(&left, next);
  }

  inline static thread_local Turns* active_ = nullptr;

  std::vector<ucontext_t> contexts_;
  std::vector<std::vector<unsigned char>> stacks_;
  std::vector<int> runnable_;
  Fibers fibers_;
  ucontext_t caller_ = {}, ended_ = {};
  const std::function<void(int)>* work_ = nullptr;
  int current_ = 0;
  uint32_t random_ = 1;
};

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
