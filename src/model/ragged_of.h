#pragma once

#include <vector>

#include "base/ragged.h"

namespace lacuna {

/// Returns the token ids of the shape's sentences, end to end, as a ragged tensor [T] of int64. Throws ShapeError if
/// there are more or fewer.
Ragged ragged_of(const std::vector<int32_t>& ids, RaggedShapePtr shape, at::Device device = at::kCPU);
/// Returns sentences end to end as a ragged tensor [T] of int64; their ids are 0, 1, 2, ...
Ragged ragged_of(const std::vector<std::vector<int32_t>>& sentences, at::Device device = at::kCPU);

}  // namespace lacuna
