#pragma once

#include <cstdint>

#include "kernels/profile.h"

namespace lacuna {

/// Measures the time that all threads spend in matrix products during its lifetime. LibTorch calls back at the start and end of each
/// operation; nested products count once.
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

/// Returns the seconds that all products of a profile take when each is computed alone, without biases: medians of a few runs after a
/// warm-up. Work that training does on a product's blocks while they are in the cache (in bf16, activation and loss) counts as the
/// product's time there, and is not done here.
double seconds_of_products_alone(const Profile& profile);

}  // namespace lacuna
