#include "analysis/explored_sentence.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <random>

#include "golden.h"
#include "small_analysis.h"

namespace lacuna {
namespace {

TEST(RoundedMap, RoundsWeightsByMagnitudeAndKeepsTheirSign) {
  const SentenceWeights weights(json::parse("[[[-0.5, 2, 0], [-2, null, 1e-9]]]"), 0, AttentionSite::kCross);
  const RoundedMap map = rounded_map(weights.call(), 0);
  const uint8_t half = 32, most = RoundedMap::kLevels,
                sign = RoundedMap::kNegative;  // a quarter of the weight is half the side
  EXPECT_EQ(map.scale, 2);
  EXPECT_EQ(map.levels, (std::vector<uint8_t>{static_cast<uint8_t>(half + sign), most, 0, static_cast<uint8_t>(most + sign),
                                              RoundedMap::kNotVisible, 1}));
}

/// Levels of which three quarters can't be packed away.
std::vector<RoundedMap> noise(size_t size) {
  std::mt19937 random(1);
  std::vector<RoundedMap> maps = {{.scale = 1, .levels = std::vector<uint8_t>(size)}};
  for (uint8_t& level : maps[0].levels) level = static_cast<uint8_t>(random() % RoundedMap::kLevels);
  return maps;
}

/// Adds a pair of one word a side.
void add(ExploredSentences& sentences, int64_t line, const std::vector<RoundedMap>& maps) {
  SentencePair pair;
  pair.line = line;
  pair.src_text = "a";
  pair.tgt_text = "b";
  pair.src = {3, kEos};
  pair.tgt = {4, kEos};
  sentences.add(pair, words_a_to_t(), "", maps);
}

std::vector<int64_t> kept_lines(const ExploredSentences& sentences) {
  std::vector<int64_t> lines;
  for (const ExploredSentence& one : sentences.kept) lines.push_back(one.line);
  return lines;
}

TEST(ExploredSentences, HoldTheLevelsOfAllMapsOneBehindTheOther) {
  ExploredSentences sentences;
  add(sentences, 7, {{.scale = 2, .levels = {1, 0, 63}}, {.scale = .5f, .levels = {RoundedMap::kNotVisible}}});
  const ExploredSentence& one = sentences.kept.at(0);
  std::vector<uint8_t> levels(10);
  uLongf size = levels.size();
  ASSERT_EQ(uncompress(levels.data(), &size, reinterpret_cast<const Bytef*>(one.levels.data()), one.levels.size()), Z_OK);
  levels.resize(size);
  EXPECT_EQ(levels, (std::vector<uint8_t>{1, 0, 63, RoundedMap::kNotVisible}));
  EXPECT_EQ(one.scales, (std::vector<float>{2, .5f}));
  EXPECT_EQ(one.line, 7);
}

TEST(ExploredSentences, KeepNothingButLinesOnceThereIsNoRoom) {
  ExploredSentences sentences(/*most_bytes=*/7000);
  add(sentences, 0, noise(3000));  // some 2,700 bytes
  add(sentences, 1, {});           // too large for its weights to be rounded
  add(sentences, 2, noise(3000));
  EXPECT_FALSE(sentences.is_full());
  add(sentences, 4, noise(3000));
  EXPECT_TRUE(sentences.is_full());
  add(sentences, 5, noise(1));
  EXPECT_THAT(kept_lines(sentences), testing::ElementsAre(0, 2));
  EXPECT_THAT(sentences.omitted, testing::ElementsAre(1, 4, 5));
  EXPECT_EQ(sentences.size(), 5u);
  EXPECT_LT(sentences.kept[0].levels.size(), 2600u);
  EXPECT_EQ(sentences.kept[0].src, (std::vector<std::string>{"a", "</s>"}));
}

TEST(ExploredSentences, LeaveOutOneThatIsTooLargeForThePageAndNotThoseBehindIt) {
  ExploredSentences sentences;
  add(sentences, 0, noise(3000000));
  add(sentences, 1, noise(10));
  EXPECT_THAT(kept_lines(sentences), testing::ElementsAre(1));
  EXPECT_THAT(sentences.omitted, testing::ElementsAre(0));
}

}  // namespace
}  // namespace lacuna
