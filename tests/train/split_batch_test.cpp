#include "train/split_batch.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace lacuna {
namespace {

using testing::ElementsAre;

Batch batch_of(const std::vector<int32_t>& src_lengths, const std::vector<int32_t>& tgt_lengths, const std::vector<int64_t>& ids) {
  Batch batch;
  batch.src_shape = std::make_shared<const RaggedShape>(RaggedShape::of_lengths(src_lengths, ids));
  batch.tgt_shape = std::make_shared<const RaggedShape>(RaggedShape::of_lengths(tgt_lengths, ids));
  for (int64_t i = 0; i < batch.src_shape->num_tokens(); ++i) batch.src.push_back(static_cast<TokenId>(100 + i));
  for (int64_t i = 0; i < batch.tgt_shape->num_tokens(); ++i) batch.tgt.push_back(static_cast<TokenId>(200 + i));
  return batch;
}

TEST(SplitBatch, CutsAtTheBorderNearestToHalf) {
  const auto [first, second] = split_batch(batch_of({1, 2, 1}, {2, 1, 2}, {7, 3, 9}));
  EXPECT_THAT(first->tgt, ElementsAre(200, 201));
  EXPECT_THAT(second->tgt, ElementsAre(202, 203, 204));
  EXPECT_THAT(first->src, ElementsAre(100));
  EXPECT_THAT(second->src, ElementsAre(101, 102, 103));
  EXPECT_THAT(second->src_shape->offsets(), ElementsAre(0, 2, 3));
}

TEST(SplitBatch, SentencesKeepTheirIds) {
  const auto [first, second] = split_batch(batch_of({1, 2, 1}, {2, 1, 2}, {7, 3, 9}));
  EXPECT_THAT(first->tgt_shape->ids(), ElementsAre(7));
  EXPECT_THAT(second->src_shape->ids(), ElementsAre(3, 9));
}

TEST(SplitBatch, NeitherHalfIsEmpty) {
  const auto [first, second] = split_batch(batch_of({1, 1}, {1, 100}, {0, 1}));
  EXPECT_EQ(first->tgt_tokens(), 1);
  EXPECT_EQ(second->tgt_tokens(), 100);
}

TEST(SplitBatch, OneSentenceCannotBeSplit) {
  EXPECT_THROW(split_batch(batch_of({3}, {3}, {0})), ShapeError);
}

}  // namespace
}  // namespace lacuna
