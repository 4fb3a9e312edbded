#pragma once

#include <ATen/core/Tensor.h>

#include "base/ragged_shape.h"

namespace lacuna {

using at::Tensor;

/// A ragged tensor: values [T, ...] of B sentences end to end, and their borders. Every module takes and gives these.
struct Ragged {
  Tensor values;
  RaggedShapePtr shape;

  /// The same borders around other values [T, ...].
  Ragged with(Tensor other) const { return {std::move(other), shape}; }
};

}  // namespace lacuna
