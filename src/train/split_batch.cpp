#include "train/split_batch.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace lacuna {
namespace {

RaggedShapePtr sub_shape(const RaggedShape& shape, int64_t first, int64_t last) {
  std::vector<int32_t> lengths;
  std::vector<int64_t> ids;
  for (int64_t b = first; b < last; ++b) {
    lengths.push_back(shape.length(b));
    ids.push_back(shape.id(b));
  }
  return std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths, std::move(ids)));
}

std::vector<TokenId> sub_tokens(const std::vector<TokenId>& tokens, const RaggedShape& shape, int64_t first, int64_t last) {
  const auto& offsets = shape.offsets();
  return {tokens.begin() + offsets[static_cast<size_t>(first)], tokens.begin() + offsets[static_cast<size_t>(last)]};
}

BatchPtr sentences(const Batch& batch, int64_t first, int64_t last) {
  auto part = std::make_shared<Batch>();
  part->src = sub_tokens(batch.src, *batch.src_shape, first, last);
  part->tgt = sub_tokens(batch.tgt, *batch.tgt_shape, first, last);
  part->src_shape = sub_shape(*batch.src_shape, first, last);
  part->tgt_shape = sub_shape(*batch.tgt_shape, first, last);
  return part;
}

}  // namespace

std::pair<BatchPtr, BatchPtr> split_batch(const Batch& batch) {
  const int64_t count = batch.tgt_shape->num_sentences();
  if (count < 2) throw ShapeError("a batch of one sentence cannot be split");
  const std::vector<int32_t>& offsets = batch.tgt_shape->offsets();
  const auto half = [&](int32_t a, int32_t b) {
    return std::abs(2 * int64_t{a} - offsets.back()) < std::abs(2 * int64_t{b} - offsets.back());
  };
  const auto border = std::min_element(offsets.begin() + 1, offsets.end() - 1, half) - offsets.begin();
  return {sentences(batch, 0, border), sentences(batch, border, count)};
}

}  // namespace lacuna
