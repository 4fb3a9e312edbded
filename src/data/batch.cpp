#include "data/batch.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/random.h"

namespace lacuna {
namespace {

std::vector<TokenId> random_sentence(int64_t length, int64_t pieces, RandomStream& random) {
  constexpr TokenId kFirst = kEos + 1;  // the first token that sentences may contain
  std::vector<TokenId> sentence;
  for (int64_t i = 1; i < length; ++i)
    sentence.push_back(kFirst + static_cast<TokenId>(random.next_below(static_cast<uint64_t>(pieces - kFirst))));
  sentence.push_back(kEos);
  return sentence;
}

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
  const int32_t src_begin = batch.src_shape->begin(first), tgt_begin = batch.tgt_shape->begin(first);
  const int32_t tgt_end = batch.tgt_shape->offsets()[static_cast<size_t>(last)];
  for (const auto& [src, tgt] : batch.links)
    if (tgt >= tgt_begin && tgt < tgt_end) part->links.emplace_back(src - src_begin, tgt - tgt_begin);
  return part;
}

}  // namespace

void BatchBuilder::add(std::span<const TokenId> src, std::span<const TokenId> tgt, int64_t id, std::span<const WordLink> links) {
  for (const auto& [s, t] : links) links_.emplace_back(src_offsets_.back() + s, tgt_offsets_.back() + t);
  src_.insert(src_.end(), src.begin(), src.end());
  tgt_.insert(tgt_.end(), tgt.begin(), tgt.end());
  src_offsets_.push_back(static_cast<int32_t>(src_.size()));
  tgt_offsets_.push_back(static_cast<int32_t>(tgt_.size()));
  ids_.push_back(id);
}

std::shared_ptr<const Batch> BatchBuilder::take() {
  auto batch = std::make_shared<Batch>();
  batch->src_shape = std::make_shared<RaggedShape>(std::move(src_offsets_), ids_);
  batch->tgt_shape = std::make_shared<RaggedShape>(std::move(tgt_offsets_), std::move(ids_));
  batch->src = std::move(src_);
  batch->tgt = std::move(tgt_);
  batch->links = std::move(links_);
  *this = {};
  return batch;
}

std::shared_ptr<const Batch> random_batch(const RandomBatch& wanted) {
  RandomStream random(random_key(wanted.seed, RandomUse::kSample, 0, static_cast<uint64_t>(wanted.sentence_length)));
  BatchBuilder builder;
  int64_t id = 0;
  for (int64_t left = wanted.tokens; left > 0; left -= wanted.sentence_length) {
    const int64_t length = std::min(left, wanted.sentence_length);
    const std::vector<TokenId> src = random_sentence(length, wanted.src_pieces, random);
    builder.add(src, random_sentence(length, wanted.tgt_pieces, random), id++);
  }
  return builder.take();
}

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
