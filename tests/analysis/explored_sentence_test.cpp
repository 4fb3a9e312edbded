#include "analysis/explored_sentence.h"

#include "golden.h"

namespace lacuna {
namespace {

TEST(ExploredSentence, RoundsWeightsByMagnitudeAndKeepsTheirSign) {
  const SentenceWeights weights(json::parse("[[[-0.5, 2, 0], [-2, null, 1e-9]]]"), 0, AttentionSite::kCross);
  const ExploredSentence::Map map = rounded_map(weights.call(), 0);
  const uint8_t half = 32, most = ExploredSentence::kLevels,
                sign = ExploredSentence::kNegative;  // a quarter of the weight is half the side
  EXPECT_EQ(map.scale, 2);
  EXPECT_EQ(map.levels, (std::vector<uint8_t>{static_cast<uint8_t>(half + sign), most, 0, static_cast<uint8_t>(most + sign),
                                              ExploredSentence::kNotVisible, 1}));
}

}  // namespace
}  // namespace lacuna
