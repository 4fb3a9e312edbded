#pragma once

#include <ucontext.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <vector>

#include "fibers.h"

namespace lacuna::gpu {

/// Threads of a GPU's block that take turns on one thread of the machine. One runs until it has to wait for others; then one that need not
/// wait goes on, chosen by a fixed pseudo-random sequence. So a missing barrier shows, and the result does not depend on the machine's
/// load.
class Turns {
 public:
  struct Barrier {
    int size = 0;
    std::vector<int> waiting = {};
  };

  /// Runs work(i) on threads 0 to `threads` until all have ended. Ends the process if some wait for what does not come.
  void run(int threads, const std::function<void(int)>& work) {
    if (threads == 1) return work(0);
    prepare(threads);
    work_ = &work;
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

  /// Returns the thread whose turn it is.
  int current() const { return current_; }

 private:
  static constexpr size_t kStackBytes = 256 * 1024;

  static void start(int thread) {
    (*active_->work_)(thread);
    --active_->at_work_;
    active_->go_on(active_->ended_);  // does not return
  }

  void prepare(int threads) {
    const auto count = static_cast<size_t>(threads);
    if (contexts_.size() < count) {
      contexts_.resize(count);
      stacks_.resize(count);
    }
    for (size_t i = 0; i < count; ++i) {
      stacks_[i].resize(kStackBytes);
      getcontext(&contexts_[i]);
      contexts_[i].uc_stack.ss_sp = stacks_[i].data();
      contexts_[i].uc_stack.ss_size = stacks_[i].size();
      contexts_[i].uc_link = nullptr;
      makecontext(&contexts_[i], reinterpret_cast<void (*)()>(start), 1, static_cast<int>(i));
      runnable_.push_back(static_cast<int>(i));
    }
    at_work_ = threads;
    fibers_.prepare(count);
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
      if (at_work_ > 0) std::abort();
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
  int current_ = 0, at_work_ = 0;
  uint32_t random_ = 1;
};

}  // namespace lacuna::gpu
