#pragma once

#include <cstdint>

#include "base/ragged.h"
#include "kernels/row_kernels.h"

namespace lacuna {

/// Dropout of the features of ragged rows, without a stored mask: whether an element is dropped is a pure function of
/// the key (seed, step, place in the model), the sentence's id, the position in the sentence and the feature. Neither
/// threads nor batching change it.
///
/// Decisions have 16 bits: `rate` is rounded to a multiple of 2^-16. Kept elements are multiplied with 1 / (1 - rate).
struct Dropout {
  double rate = 0;       ///< 0 = nothing is dropped
  uint64_t key = 0;      ///< random_key(seed, RandomUse::kDropout, step, site)
  RaggedShapePtr shape;  ///< of the rows; may be null if rate is 0

  /// Returns these settings for kernels on this device.
  DropoutRows rows(at::Device device = at::kCPU) const;
};

/// Returns the factor, 0 or 1 / (1 - rate), of each element of [T, columns]: the kernels compute the same factors on
/// the fly. On a GPU the tensor is computed there.
Tensor dropout_factors(const Dropout& dropout, int64_t columns, const at::TensorOptions& options);

}  // namespace lacuna
