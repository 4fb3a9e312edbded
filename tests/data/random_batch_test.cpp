#include "data/random_batch.h"

#include <gmock/gmock.h>

#include <algorithm>

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

}  // namespace
}  // namespace lacuna
