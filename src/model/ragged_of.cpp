#include "model/ragged_of.h"

#include "base/device.h"

namespace lacuna {

Ragged ragged_of(const std::vector<int32_t>& ids, RaggedShapePtr shape, at::Device device) {
  if (static_cast<int64_t>(ids.size()) != shape->num_tokens())
    throw ShapeError(std::to_string(ids.size()) + " ids for sentences of " + std::to_string(shape->num_tokens()) + " tokens in all");
  return {tensor_of(ids, device).to(at::kLong), std::move(shape)};
}

Ragged ragged_of(const std::vector<std::vector<int32_t>>& sentences, at::Device device) {
  std::vector<int32_t> ids, lengths;
  for (const auto& sentence : sentences) {
    ids.insert(ids.end(), sentence.begin(), sentence.end());
    lengths.push_back(static_cast<int32_t>(sentence.size()));
  }
  return ragged_of(ids, std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths)), device);
}

}  // namespace lacuna
