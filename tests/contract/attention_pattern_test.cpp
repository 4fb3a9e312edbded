#include <algorithm>

#include "attention_contract.h"

// The contract of every attention pattern of the registry: which keys it shows a query.
namespace lacuna::contract {
namespace {

std::shared_ptr<const AttentionType> softmax_with(const std::string& pattern) {
  return type_of(variant("softmax", ""), pattern);
}

std::vector<int32_t> sorted(std::vector<int32_t> keys) {
  std::sort(keys.begin(), keys.end());
  return keys;
}

TEST(AttentionPattern, GivesItsWorkedExamples) {
  for (const patterns::PatternEntry* entry : patterns::all_patterns()) {
    ASSERT_FALSE(entry->examples().empty()) << entry->name << " has no worked example";
    for (const PatternExample& example : entry->examples()) {
      const auto type = softmax_with(pattern_yaml(entry->name, example.options));
      EXPECT_EQ(sorted(visible_keys(type->pattern(0), example.query, example.num_keys)), example.keys)
          << entry->name << " " << example.options << ", query " << example.query << " of " << example.num_keys << " keys";
    }
  }
}

TEST(AttentionPattern, ShowsEachKeyOfItsFormulaOnce) {
  constexpr int32_t kLongest = 40;
  for (const std::string& pattern : all_patterns()) {
    const auto type = softmax_with(pattern);
    for (int32_t num_keys = 0; num_keys <= kLongest; ++num_keys) {
      for (int32_t query = 0; query < kLongest; ++query) {
        std::vector<int32_t> expected;
        for (int32_t j = 0; j < num_keys; ++j)
          if (sees(*type, 0, query, j)) expected.push_back(j);
        ASSERT_EQ(sorted(visible_keys(type->pattern(0), query, num_keys)), expected)
            << pattern << ", query " << query << " of " << num_keys << " keys";
      }
    }
  }
}

TEST(AttentionPattern, GivesSegmentsThatHoldAKey) {
  for (const std::string& pattern : all_patterns()) {
    const auto type = softmax_with(pattern);
    for (int32_t query = 0; query < 20; ++query) {
      std::vector<KeySegment> segments;
      type->pattern(0).append_visible(query, 17, segments);
      for (const KeySegment& segment : segments) EXPECT_TRUE(segment.count > 0 && segment.stride > 0) << pattern;
    }
  }
}

TEST(AttentionPattern, ShowsQueriesOfAGroupTheSameKeys) {
  for (const std::string& pattern : all_patterns()) {
    const auto type = softmax_with(pattern);
    const AttentionPattern& keys = type->pattern(0);
    for (int32_t i = 0; i < 30; ++i)
      for (int32_t j = 0; j < i; ++j)
        if (keys.group(i) == keys.group(j)) {
          ASSERT_EQ(sorted(visible_keys(keys, i, 30)), sorted(visible_keys(keys, j, 30))) << pattern << ", queries " << i << " and " << j;
        }
  }
}

TEST(AttentionPattern, ReadsBackTheOptionsItWrites) {
  for (const std::string& pattern : all_patterns()) {
    const auto type = softmax_with(pattern);
    EXPECT_EQ(make_attention_type(type->description(), 1)->description().to_yaml(), type->description().to_yaml()) << pattern;
  }
}

TEST(AttentionPattern, TakesOptionsLargerThanAnySentence) {
  const std::vector<int32_t> all = {0, 1, 2, 3, 4, 5}, own = {4};
  const auto seen_by_4 = [](const std::string& pattern) { return sorted(visible_keys(softmax_with(pattern)->pattern(0), 4, 6)); };
  for (const std::string huge : {"9000000000000000", "9000000000000000000", "9223372036854775807"}) {
    SCOPED_TRACE(huge);
    EXPECT_EQ(seen_by_4("{type: local, window: " + huge + "}"), all);
    EXPECT_EQ(seen_by_4("{type: atrous, stride: " + huge + "}"), own);
    EXPECT_EQ(seen_by_4("{type: strided, window: 0, stride: " + huge + "}"), own);
    EXPECT_EQ(seen_by_4("{type: strided, window: " + huge + "}"), all);
    EXPECT_EQ(seen_by_4("{type: strided, window: " + huge + ", stride: " + huge + "}"), all);
    EXPECT_EQ(seen_by_4("{type: fixed, block: " + huge + "}"), all);
    EXPECT_EQ(seen_by_4("{type: fixed, block: " + huge + ", summary: " + huge + "}"), all);
  }
}

}  // namespace
}  // namespace lacuna::contract
