#pragma once

#include <cstdint>

#include "kernels/profile.h"

namespace lacuna {

/// Measures the time that all threads spend in matrix products during its lifetime; nested products count once.
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

/// Returns the seconds that a profile's products take alone, without biases: medians of a few runs. Work that training
/// does on a product's blocks (in bf16, activation and loss) counts there, but is not done here.
double seconds_of_products_alone(const Profile& profile);

}  // namespace lacuna
