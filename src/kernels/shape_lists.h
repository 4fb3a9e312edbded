#pragma once

#include <functional>
#include <utility>

#include "base/ragged.h"
#include "base/upload.h"

namespace lacuna {

/// What kernels and layers read of a ragged shape, in a device's memory.
struct ShapeLists {
  Tensor offsets;     ///< [B + 1] int32
  Tensor ids;         ///< [B] int64
  Tensor positions;   ///< [T] int32: of each token in its sentence
  Tensor first_rows;  ///< int64: of the sentences that are not empty
};

/// Returns the lists of a shape on a tensor's device. Those of the last few shapes are kept: a model asks for the same ones at every site.
ShapeLists lists_on(at::Device device, const RaggedShapePtr& shape);

/// The token ids of one side of a batch.
struct BatchSide {
  const std::vector<int32_t>& ids;
  const RaggedShapePtr& shape;
};
/// Returns both sides on a device, as ragged_of() makes them. To a GPU, all goes in one copy: the ids, the shapes' lists, which lists_on()
/// has then, and what add_more(upload) adds.
std::pair<Ragged, Ragged> batch_on(at::Device device, const BatchSide& src, const BatchSide& tgt,
                                   const std::function<void(Upload&)>& add_more);

}  // namespace lacuna
