#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/safetensors.h"

namespace lacuna {

/// Returns how many values of a tensor are NaN or infinite: none of one that holds integers.
int64_t count_not_finite(const Tensor& values);

/// Values that are NaN or infinite among named tensors.
struct NotFinite {
  std::string tensor;             ///< the first that holds any
  int64_t count = 0, values = 0;  ///< how many it holds, and of how many values
  int64_t other_tensors = 0;      ///< that hold some too

  /// Returns a text such as "encoder.norm.gain has 1 of 64 values that are not finite, and 2 other tensors have such".
  std::string text() const;
};
/// Returns nothing if all values are finite.
std::optional<NotFinite> find_not_finite(const NamedTensors& tensors);

/// Throws DamagedCheckpointError naming the file of a checkpoint and what find_not_finite finds.
void require_finite(const NamedTensors& tensors, const std::string& file);

}  // namespace lacuna
