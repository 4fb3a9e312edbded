#pragma once

#include "model/transformer.h"
#include "train/update_report.h"

namespace lacuna {

/// The sums of a batch that a device has worked out or will, on their way to the CPU.
class UnreadSums {
 public:
  /// Starts copies. `batch`: its number in the update.
  UnreadSums(int64_t batch, LossSums losses);
  /// Returns the sums. Whatever the device was given before the copies must be done: else they are waited for with a later copy.
  BatchSums read() const;
  /// The sums on the CPU, in part unread.
  const LossSums& losses() const { return losses_; }
  /// The loss where the device has it.
  const Tensor& device_loss() const { return device_loss_; }

 private:
  int64_t batch_;
  LossSums losses_;
  Tensor device_loss_;
};

}  // namespace lacuna
