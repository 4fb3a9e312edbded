#include "data/batch.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/error.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::Lt;

TEST(RandomBatch, HoldsWholeSentencesAndWhatIsLeft) {
  const auto batch = random_batch({.tokens = 10, .sentence_length = 4, .src_pieces = 20, .tgt_pieces = 30});
  EXPECT_THAT(batch->src_shape->offsets(), ElementsAre(0, 4, 8, 10));
  EXPECT_THAT(batch->tgt_shape->offsets(), ElementsAre(0, 4, 8, 10));
  EXPECT_THAT(batch->src_shape->ids(), ElementsAre(0, 1, 2));
  EXPECT_EQ(batch->src_tokens(), 10);
  EXPECT_EQ(batch->tgt_tokens(), 10);
}

TEST(RandomBatch, EndsEverySentenceWithEosAndOnlyThere) {
  const auto batch = random_batch({.tokens = 9, .sentence_length = 3, .src_pieces = 5, .tgt_pieces = 5});
  for (const auto* ids : {&batch->src, &batch->tgt})
    for (size_t i = 0; i < ids->size(); ++i) EXPECT_EQ(ids->at(i) == kEos, i % 3 == 2) << i;
}

TEST(RandomBatch, DrawsPiecesOfEachVocabulary) {
  const auto batch = random_batch({.tokens = 4000, .sentence_length = 4000, .src_pieces = 5, .tgt_pieces = 8});
  EXPECT_THAT(batch->src, Each(AllOf(Ge(kEos), Lt(5))));
  EXPECT_THAT(batch->tgt, Each(AllOf(Ge(kEos), Lt(8))));
  EXPECT_EQ(*std::max_element(batch->tgt.begin(), batch->tgt.end()), 7);
}

TEST(RandomBatch, IsDecidedByItsSeed) {
  const RandomBatch wanted = {.tokens = 64, .sentence_length = 16, .src_pieces = 1000, .tgt_pieces = 1000, .seed = 3};
  RandomBatch with_other_seed = wanted;
  with_other_seed.seed = 4;
  EXPECT_EQ(random_batch(wanted)->src, random_batch(wanted)->src);
  EXPECT_NE(random_batch(wanted)->src, random_batch(with_other_seed)->src);
}

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
