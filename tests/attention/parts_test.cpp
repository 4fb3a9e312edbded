#include "attention/parts.h"

#include <algorithm>

#include "contract/attention_contract.h"

namespace lacuna::contract {
namespace {

/// One sentence that attends to itself, and who asks.
struct Sentence {
  Sentence(const std::string& pattern, int32_t length, bool causal = false, int32_t first_position = 0)
      : type(type_of(variant("softmax", ""), pattern)) {
    call.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({length - first_position}));
    call.keys = std::make_shared<KeyRange>(KeyRange::of(RaggedShape::of_lengths({length})));
    call.first_position = {first_position};
    call.causal = causal;
    call.type = type.get();
  }
  std::vector<AttentionPart> parts() const { return attention_parts(call, 0, 0); }

  std::shared_ptr<const AttentionType> type;
  AttentionCall call;
};

using Keys = std::vector<int32_t>;

TEST(AttentionParts, OfAtrousAttentionAreEveryFewthQueryWithEveryFewthKey) {
  const auto parts = Sentence("{type: atrous, stride: 2}", 9).parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].first_query, 1);
  EXPECT_EQ(parts[1].query_step, 2);
  EXPECT_EQ(parts[1].num_queries, 4);
  EXPECT_EQ(parts[1].keys, (Keys{1, 3, 5, 7}));
  EXPECT_EQ(parts[0].keys, (Keys{0, 2, 4, 6, 8}));
}

TEST(AttentionParts, OfFixedAttentionAreBlocksWithTheSummariesOfOthers) {
  const auto parts = Sentence("{type: fixed, block: 5}", 12).parts();
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].first_query, 5);
  EXPECT_EQ(parts[1].query_step, 1);
  EXPECT_EQ(parts[1].keys, (Keys{4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(parts[2].num_queries, 2);
  EXPECT_EQ(parts[2].keys, (Keys{4, 9, 10, 11}));
}

TEST(AttentionParts, ShowACausalQueryTheFirstFewKeys) {
  const auto parts = Sentence("{type: fixed, block: 5}", 12, /*causal=*/true).parts();
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[1].keys, (Keys{4, 5, 6, 7, 8, 9}));
  ASSERT_EQ(parts[1].segments.size(), 5u);
  for (int32_t i = 0; i < 5; ++i) EXPECT_EQ(parts[1].segments[static_cast<size_t>(i)].count, 2 + i);
}

TEST(AttentionParts, AreNoneWhereTheyWouldHoldFewQueries) {
  EXPECT_TRUE(Sentence("{type: strided, window: 2, stride: 3}", 40).parts().empty());
  EXPECT_TRUE(Sentence("{type: atrous, stride: 6}", 20).parts().empty());
}

TEST(AttentionParts, ShowEveryQueryOnceWhatThePatternShowsIt) {
  for (const std::string& pattern : all_patterns())
    for (const bool causal : {false, true})
      for (const int32_t first_position : {0, 5}) {
        SCOPED_TRACE(pattern + (causal ? ", causal, from " : ", from ") + std::to_string(first_position));
        const Sentence sentence(pattern, 23, causal, first_position);
        const auto parts = sentence.parts();
        std::vector<int> times(static_cast<size_t>(23 - first_position), parts.empty() ? 1 : 0);
        for (const AttentionPart& part : parts)
          for (int32_t i = 0; i < part.num_queries; ++i) {
            const int32_t query = part.first_query + i * part.query_step, position = first_position + query;
            ++times.at(static_cast<size_t>(query));
            Keys expected = visible_keys(sentence.type->pattern(0), position, causal ? position + 1 : 23);
            std::sort(expected.begin(), expected.end());
            const auto first = part.first_segment[static_cast<size_t>(i)], end = part.first_segment[static_cast<size_t>(i) + 1];
            const int32_t count = first < end ? part.segments[static_cast<size_t>(first)].count : 0;
            EXPECT_EQ(Keys(part.keys.begin(), part.keys.begin() + count), expected) << "query " << query;
          }
        EXPECT_EQ(std::count(times.begin(), times.end(), 1), 23 - first_position);
      }
}

}  // namespace
}  // namespace lacuna::contract
