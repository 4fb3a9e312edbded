#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "base/device.h"
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

/// Returns the token ids of the shape's sentences, end to end, as a ragged tensor [T] of int64. Throws ShapeError if
/// there are more or fewer.
inline Ragged ragged_of(const std::vector<int32_t>& ids, RaggedShapePtr shape, at::Device device = at::kCPU) {
  if (static_cast<int64_t>(ids.size()) != shape->num_tokens())
    throw ShapeError(std::to_string(ids.size()) + " ids for sentences of " + std::to_string(shape->num_tokens()) + " tokens in all");
  return {tensor_of(ids, device).to(at::kLong), std::move(shape)};
}

/// Returns sentences end to end as a ragged tensor [T] of int64; their ids are 0, 1, 2, ...
inline Ragged ragged_of(const std::vector<std::vector<int32_t>>& sentences, at::Device device = at::kCPU) {
  std::vector<int32_t> ids, lengths;
  for (const auto& sentence : sentences) {
    ids.insert(ids.end(), sentence.begin(), sentence.end());
    lengths.push_back(static_cast<int32_t>(sentence.size()));
  }
  return ragged_of(ids, std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths)), device);
}

}  // namespace lacuna
