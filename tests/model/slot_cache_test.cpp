#include "model/slot_cache.h"

#include <gtest/gtest.h>

namespace lacuna {
namespace {

SlotCache cache_of(const std::vector<int32_t>& lengths) {
  const auto shape = std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths));
  return SlotCache(shape, {{.keys_values = at::zeros({shape->num_tokens(), 8}), .mask_keys = {}}}, {at::empty({0, 2, 2, 2})});
}

TEST(SlotCache, BeginsWithOneHypothesisForEachSentence) {
  EXPECT_EQ(cache_of({3, 2}).sentences(), (std::vector<int32_t>{0, 1}));
}

TEST(SlotCache, SharesTheSlotsOfACommonPast) {
  SlotCache cache = cache_of({3});
  const int32_t first = cache.append().keys->slots[0];
  cache.select({0, 0});
  const StepKeys keys = cache.append();
  ASSERT_EQ(keys.keys->slots.size(), 4u);
  EXPECT_EQ(keys.keys->slots[0], first);
  EXPECT_EQ(keys.keys->slots[2], first);
  EXPECT_NE(keys.keys->slots[1], keys.keys->slots[3]);
  EXPECT_EQ(keys.positions, (std::vector<int32_t>{1, 1}));
}

TEST(SlotCache, UsesFreeSlotsAgain) {
  SlotCache cache = cache_of({3, 3, 3, 3});
  cache.append();
  const int64_t capacity = cache.capacity();  // 64
  for (int i = 0; i < 50; ++i) {
    cache.select({0, 0, 0, 0});  // the others' newest tokens are forgotten: 51 + 3 slots are in use in the end, 204 were given
    cache.append();
  }
  EXPECT_EQ(cache.capacity(), capacity);
}

TEST(SlotCache, KeepsWhatIsInTheBufferWhenItGrows) {
  SlotCache cache = cache_of({3});
  const StepKeys first = cache.append();
  cache.buffer(0)[first.new_slots[0]].fill_(5);
  const int64_t capacity = cache.capacity();
  while (cache.capacity() == capacity) cache.append();
  EXPECT_EQ(cache.buffer(0)[first.new_slots[0]].min().item<float>(), 5);
}

TEST(SlotCache, NamesTheSourceOfEachHypothesis) {
  SlotCache cache = cache_of({3, 2});
  cache.select({1, 1, 0});
  EXPECT_EQ(cache.sentences(), (std::vector<int32_t>{1, 1, 0}));
}

/// Keys and values of token i are all i + `first`; mask keys are 100 more.
SlotCache counting_cache(const std::vector<int32_t>& lengths, float first) {
  const auto shape = std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths));
  const Tensor rows = (at::arange(shape->num_tokens()) + first).view({-1, 1}).to(at::kFloat).expand({-1, 8}).contiguous();
  return SlotCache(shape, {{.keys_values = rows, .mask_keys = rows.narrow(1, 0, 4) + 100}}, {at::empty({0, 3, 2, 2})});
}

TEST(SlotCache, JoinsAnotherBehindWhatIsLeft) {
  SlotCache cache = counting_cache({2, 1, 3}, 0);
  cache.append();
  cache.select({0, 0, 2});
  SlotCache fresh = counting_cache({1, 2}, 10);
  cache.join(fresh);
  EXPECT_EQ(cache.num_hypotheses(), 5);
  EXPECT_EQ(cache.sentences(), (std::vector<int32_t>{0, 0, 1, 2, 3}));
  EXPECT_EQ(cache.memory_keys()->begin, (std::vector<int32_t>{0, 2, 5, 6}));
  EXPECT_EQ(cache.memory_keys()->count, (std::vector<int32_t>{2, 3, 1, 2}));
  const Tensor expected = at::tensor({0, 1, 3, 4, 5, 10, 11, 12}, at::kFloat);
  EXPECT_TRUE(cache.memory(0).keys_values.select(1, 0).equal(expected));
  EXPECT_TRUE(cache.memory(0).mask_keys.select(1, 0).equal(expected + 100));
  EXPECT_EQ(cache.append().positions, (std::vector<int32_t>{1, 1, 1, 0, 0}));
}

TEST(SlotCache, DoesNotJoinOneThatHasBeenStepped) {
  SlotCache cache = cache_of({2}), stepped = cache_of({2});
  stepped.append();
  EXPECT_THROW(cache.join(stepped), std::logic_error);
}

TEST(SlotCache, TakesHypothesesOfASentenceAsItsQueries) {
  SlotCache cache = cache_of({3, 2});
  cache.select({1, 1, 0, 1});
  EXPECT_EQ(cache.memory_queries(), (std::vector<int32_t>{0, 2, 3, 4}));
  EXPECT_EQ(cache.memory_keys()->begin, (std::vector<int32_t>{3, 0, 3}));
  EXPECT_EQ(cache.memory_keys()->count, (std::vector<int32_t>{2, 3, 2}));
}

}  // namespace
}  // namespace lacuna
