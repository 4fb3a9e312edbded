#include "text/bpe_dropout.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

namespace lacuna {
namespace {

using ::testing::ElementsAre;
using Pieces = std::vector<std::string>;

const std::map<std::string, float> kScores = {{"ab", 0}, {"cd", -1}, {"bc", -2}, {"abcd", -3}};

std::optional<float> score_of(const std::string& piece) {
  const auto found = kScores.find(piece);
  return found == kScores.end() ? std::nullopt : std::optional(found->second);
}

TEST(BpeDropout, WithoutDropoutMergesTheBestPairFirst) {
  EXPECT_THAT(bpe_with_dropout({"a", "b", "c", "d"}, score_of, 0, 1), ElementsAre("abcd"));
  EXPECT_THAT(bpe_with_dropout({"x", "b", "c", "d"}, score_of, 0, 1), ElementsAre("x", "b", "cd"));
  EXPECT_THAT(bpe_with_dropout({"a"}, score_of, 0, 1), ElementsAre("a"));
  EXPECT_THAT(bpe_with_dropout({}, score_of, 0, 1), ElementsAre());
}

TEST(BpeDropout, WithFullDropoutMergesNothing) {
  EXPECT_THAT(bpe_with_dropout({"a", "b", "c", "d"}, score_of, 1, 1), ElementsAre("a", "b", "c", "d"));
}

TEST(BpeDropout, MergesAPairAsOftenAsNotDropped) {
  int merged = 0;
  for (uint64_t key = 0; key < 20000; ++key) merged += bpe_with_dropout({"a", "b"}, score_of, 0.3, key).size() == 1;
  EXPECT_NEAR(merged / 20000.0, 0.7, 0.015);
}

TEST(BpeDropout, ReachesEverySegmentation) {
  std::set<Pieces> seen;
  for (uint64_t key = 0; key < 2000; ++key) seen.insert(bpe_with_dropout({"a", "b", "c", "d"}, score_of, 0.5, key));
  EXPECT_EQ(seen, (std::set<Pieces>{{"a", "b", "c", "d"}, {"ab", "c", "d"}, {"a", "b", "cd"}, {"a", "bc", "d"}, {"ab", "cd"}, {"abcd"}}));
}

TEST(BpeDropout, IsAFunctionOfItsKey) {
  for (uint64_t key = 0; key < 100; ++key)
    EXPECT_EQ(bpe_with_dropout({"a", "b", "c", "d"}, score_of, 0.5, key), bpe_with_dropout({"a", "b", "c", "d"}, score_of, 0.5, key));
}

}  // namespace
}  // namespace lacuna
