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
/// Adds a tensor to what was found in others. Returns true if its values are finite.
bool note_not_finite(const std::string& name, const Tensor& tensor, std::optional<NotFinite>& found);

/// Throws DamagedCheckpointError naming the file of a checkpoint and what was found there, if anything was.
void require_none_found(const std::optional<NotFinite>& found, const std::string& file);
/// Does that for what find_not_finite finds.
void require_finite(const NamedTensors& tensors, const std::string& file);

}  // namespace lacuna
