#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace lacuna::cuda {

/// Cooperative threads that take turns on one thread of the machine. Each runs until it must wait for others; the next one is chosen by a
/// fixed pseudo-random sequence. So a missing barrier shows, and the result does not depend on the machine's load.
class Turns {
 public:
  struct Barrier {
    int size = 0, arrived = 0, passed = 0;
  };

  explicit Turns(int threads) : threads_(threads), contexts_(static_cast<size_t>(threads)), stacks_(static_cast<size_t>(threads)) {}

  /// Runs work(i) on each thread i until all have ended.
  void run(const std::function<void(int)>& work) {
    if (threads_ == 1) return work(0);
    work_ = &work;
    running_.clear();
    for (int i = 0; i < threads_; ++i) {
      ucontext_t& context = contexts_[static_cast<size_t>(i)];
      auto& stack = stacks_[static_cast<size_t>(i)];
      stack.resize(kStackBytes);
      getcontext(&context);
      context.uc_stack.ss_sp = stack.data();
      context.uc_stack.ss_size = stack.size();
      context.uc_link = &caller_;
      makecontext(&context, reinterpret_cast<void (*)()>(start), 1, i);
      running_.push_back(i);
    }
    Turns* const outer = active_;
    active_ = this;
    current_ = running_.front();
    swapcontext(&caller_, &contexts_[static_cast<size_t>(current_)]);
    active_ = outer;
  }

  void wait(Barrier& barrier) {
    const int turn = barrier.passed;
    if (++barrier.arrived == barrier.size) {
      barrier.arrived = 0;
      ++barrier.passed;
    }
    while (barrier.passed == turn) give_way();
  }

 private:
  static constexpr size_t kStackBytes = 256 * 1024;

  static void start(int thread) {
    Turns& turns = *active_;
    (*turns.work_)(thread);
    std::erase(turns.running_, thread);
    if (!turns.running_.empty()) turns.give_way();  // does not return; the last thread returns to run()
  }

  void give_way() {
    random_ = random_ * 1664525u + 1013904223u;
    const int before = current_;
    current_ = running_[(random_ >> 16) % running_.size()];
    if (current_ != before) swapcontext(&contexts_[static_cast<size_t>(before)], &contexts_[static_cast<size_t>(current_)]);
  }

  inline static thread_local Turns* active_ = nullptr;

  int threads_;
  std::vector<ucontext_t> contexts_;
  std::vector<std::vector<unsigned char>> stacks_;
  std::vector<int> running_;
  ucontext_t caller_ = {};
  const std::function<void(int)>* work_ = nullptr;
  int current_ = 0;
  uint32_t random_ = 1;
};

/// A block of threads on the CPU, to test kernels without a GPU: one thread, or several that take turns.
template <int kLanesOfWarp, int kWarpsOfBlock>
class EmulatedBlock {
 public:
  static constexpr int kLanes = kLanesOfWarp, kWarps = kWarpsOfBlock, kThreads = kLanes * kWarps;

  /// State shared by the threads of a block.
  struct Meeting {
    Turns turns{kThreads};
    Turns::Barrier all{kThreads}, warps[kWarps];
    float values[kThreads] = {};
    Meeting() {
      for (Turns::Barrier& warp : warps) warp.size = kLanes;
    }
  };

  EmulatedBlock() = default;
  EmulatedBlock(Meeting& meeting, int thread) : meeting_(&meeting), thread_(thread) {}

  int lane() const { return thread_ % kLanes; }
  int warp() const { return thread_ / kLanes; }
  int warps() const { return kWarps; }
  void sync() const {
    if constexpr (kThreads > 1) meeting_->turns.wait(meeting_->all);
  }
  void sync_warp() const {
    if constexpr (kLanes > 1) meeting_->turns.wait(meeting_->warps[warp()]);
  }
  float sum(float x) const {
    return gathered(x, [](float a, float b) { return a + b; });
  }
  float max(float x) const {
    return gathered(x, [](float a, float b) { return std::max(a, b); });
  }
  int rank(bool holds, int& total) const {
    if constexpr (kLanes == 1) {
      total = holds;
      return 0;
    }
    share(holds ? 1.f : 0.f);
    int before = 0;
    total = 0;
    for (int i = 0; i < kLanes; ++i) {
      if (i == lane()) before = total;
      total += static_cast<int>(values()[i]);
    }
    sync_warp();
    return before;
  }

 private:
  float* values() const { return meeting_->values + warp() * kLanes; }
  void share(float x) const {
    values()[lane()] = x;
    sync_warp();
  }
  template <class F>
  float gathered(float x, F join) const {
    if constexpr (kLanes == 1) return x;
    share(x);
    float result = values()[0];
    for (int i = 1; i < kLanes; ++i) result = join(result, values()[i]);
    sync_warp();
    return result;
  }

  Meeting* meeting_ = nullptr;
  int thread_ = 0;
};

}  // namespace lacuna::cuda
