#include "attention/cpu/parts.h"

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
  std::vector<AttentionPart> parts(const std::vector<int32_t>& reach = {}) const { return attention_parts(call, 0, 0, reach); }

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

/// Returns a query's keys that are at most `reach` away, ascending.
Keys near(Keys keys, int32_t position, int32_t reach) {
  std::erase_if(keys, [=](int32_t key) { return std::abs(key - position) > reach; });
  std::sort(keys.begin(), keys.end());
  return keys;
}

TEST(AttentionParts, ShowAQueryNoMoreThanItReaches) {
  for (const std::string pattern : {"{type: atrous, stride: 3}", "{type: fixed, block: 5, summary: 2}"})
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(pattern + (causal ? ", causal" : ""));
      const Sentence sentence(pattern, 23, causal);
      std::vector<int32_t> reach;
      for (int32_t i = 0; i < 23; ++i) reach.push_back(7 * i % 9);
      const auto parts = sentence.parts(reach);
      ASSERT_FALSE(parts.empty());
      for (const AttentionPart& part : parts)
        for (int32_t i = 0; i < part.num_queries; ++i) {
          const int32_t query = part.first_query + i * part.query_step;
          const auto first = static_cast<size_t>(part.first_segment[static_cast<size_t>(i)]);
          ASSERT_EQ(part.first_segment[static_cast<size_t>(i) + 1], part.first_segment[static_cast<size_t>(i)] + 1);
          const auto begin = part.keys.begin() + part.segments[first].begin;
          EXPECT_EQ(Keys(begin, begin + part.segments[first].count),
                    near(visible_keys(sentence.type->pattern(0), query, causal ? query + 1 : 23), query, reach[static_cast<size_t>(query)]))
              << "query " << query;
        }
    }
}

TEST(KeepNear, LeavesTheKeysWithinReach) {
  for (const std::string& pattern : all_patterns())
    for (const int32_t query : {0, 7, 22})
      for (const int32_t reach : {0, 1, 5, 100}) {
        SCOPED_TRACE(pattern + ", query " + std::to_string(query) + ", reach " + std::to_string(reach));
        const auto type = type_of(variant("softmax", ""), pattern);
        std::vector<KeySegment> segments;
        type->pattern(0).append_visible(query, 23, segments);
        keep_near(query, reach, segments);
        Keys found;
        for (const KeySegment& segment : segments) {
          EXPECT_GT(segment.count, 0);
          for (int32_t j = 0; j < segment.count; ++j) found.push_back(segment.begin + j * segment.stride);
        }
        EXPECT_EQ(near(found, 0, 23), near(visible_keys(type->pattern(0), query, 23), query, reach));
      }
}

}  // namespace
}  // namespace lacuna::contract
