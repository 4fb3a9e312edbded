#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "base/ragged_shape.h"

namespace lacuna {

using at::Tensor;
struct NormSource;

/// A ragged tensor: values [T, ...] of B sentences end to end, and their borders. Every module takes and gives these.
struct Ragged {
  Tensor values;
  RaggedShapePtr shape;
  std::shared_ptr<const NormSource> source = nullptr;  ///< of the values (kernels/residual_norm.h); null = not known

  /// The same borders around other values [T, ...].
  Ragged with(Tensor other) const { return {std::move(other), shape, nullptr}; }
};

}  // namespace lacuna
