#pragma once

#include <cstddef>
#include <vector>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LACUNA_HAS_FIBERS 1
#include <sanitizer/tsan_interface.h>
#endif
#endif

namespace lacuna::gpu {

/// Tells the thread sanitizer which stack a thread of the machine goes on with, before it leaves one for another (swapcontext). Without
/// that sanitizer it does nothing.
class Fibers {
 public:
#ifdef LACUNA_HAS_FIBERS
  Fibers() = default;
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;
  ~Fibers() {
    for (void* fiber : fibers_) __tsan_destroy_fiber(fiber);
  }
  /// There are stacks 0 to `count`, and the one of the caller.
  void prepare(size_t count) {
    while (fibers_.size() < count) fibers_.push_back(__tsan_create_fiber(0));
    caller_ = __tsan_get_current_fiber();
  }
  void go_to(int stack) {
    __tsan_switch_to_fiber(fibers_[static_cast<size_t>(stack)], 0);
  }
  void go_to_caller() {
    __tsan_switch_to_fiber(caller_, 0);
  }

 private:
  std::vector<void*> fibers_;
  void* caller_ = nullptr;
#else
  void prepare(size_t /*count*/) {}
  void go_to(int /*stack*/) {}
  void go_to_caller() {}
#endif
};

}  // namespace lacuna::gpu
