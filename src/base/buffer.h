#pragma once

#include <cstdint>
#include <memory>
#include <new>

namespace lacuna {

/// Memory that begins at a cache line and grows on demand; its content is undefined.
template <class S>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// Returns room for `size` numbers.
  S* of(int64_t size) {
    if (size > size_) {
      clear();
      memory_.reset(static_cast<S*>(::operator new(static_cast<size_t>(size) * sizeof(S), kLine)));
      size_ = size;
    }
    return memory_.get();
  }
  int64_t size() const { return size_; }
  void clear() {
    memory_.reset();
    size_ = 0;
  }

 private:
  static constexpr std::align_val_t kLine{64};
  struct Free {
    void operator()(S* memory) const { ::operator delete(memory, kLine); }
  };

  int64_t size_ = 0;
  std::unique_ptr<S, Free> memory_;
};

}  // namespace lacuna
