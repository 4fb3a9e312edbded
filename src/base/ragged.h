#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

#include "base/ragged_shape.h"

namespace lacuna {

using at::Tensor;

/// A ragged tensor: values [T, ...] of B sentences end to end, and the sentences' borders.
struct Ragged {
  Tensor values;
  RaggedShapePtr shape;

  /// Returns other values [T, ...] with these borders.
  Ragged with(Tensor other) const { return {std::move(other), shape}; }
};

}  // namespace lacuna
