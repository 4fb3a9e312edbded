#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

#include "train/adam_step.h"

namespace lacuna {

/// An update that was given to a GPU, which works it out by itself: what comes of it is read later.
class QueuedUpdate {
 public:
  /// `record`: an UpdateRecord on the device, as bytes. Whatever was queued before is done once read() returns.
  explicit QueuedUpdate(const at::Tensor& record);
  /// Waits for the device to come to this update.
  UpdateRecord read() const;

 private:
  at::Tensor record_;  // on the CPU
  std::optional<c10::Event> done_;
};

}  // namespace lacuna
