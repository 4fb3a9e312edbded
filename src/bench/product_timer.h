#pragma once

#include <cstdint>

namespace lacuna {

/// Measures how much of a program's time is matrix products, while it lives: LibTorch calls back at the start and end of each of its
/// operations, on every thread, and those that multiply matrices are summed. Products that another one calls inside are counted once.
class ProductTimer {
 public:
  ProductTimer();
  ~ProductTimer();
  ProductTimer(const ProductTimer&) = delete;
  ProductTimer& operator=(const ProductTimer&) = delete;

  /// Seconds spent in matrix products since construction or the last `restart`.
  double seconds() const;
  void restart();

 private:
  uint64_t handle_;
};

}  // namespace lacuna
