#include <cmath>

#include "model/embedding.h"
#include "small_model.h"

namespace lacuna {
namespace {

TEST(SinusoidalPositions, InterleavedAreThePapers) {
  const Tensor table = sinusoidal_positions(4, 6, PositionLayout::kInterleaved);
  EXPECT_NEAR(table[3][2].item<double>(), std::sin(3 / std::pow(10000, 2.0 / 6)), 1e-15);
  EXPECT_NEAR(table[3][3].item<double>(), std::cos(3 / std::pow(10000, 2.0 / 6)), 1e-15);
}

TEST(SinusoidalPositions, ConcatenatedHaveAllSinesFirst) {
  const Tensor turns = sinusoidal_positions(4, 6, PositionLayout::kInterleaved),
               halves = sinusoidal_positions(4, 6, PositionLayout::kConcatenated);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(halves[3][i].item<double>(), turns[3][2 * i].item<double>());
    EXPECT_EQ(halves[3][3 + i].item<double>(), turns[3][2 * i + 1].item<double>());
  }
}

TEST(LearnedPositions, RefuseASentenceThatIsTooLong) {
  ModelOptions options = small_options();
  options.positions = Positions::kLearned;
  options.max_positions = 3;
  const auto model = small_model(options);
  EXPECT_EQ(model->max_positions(), 3);
  EXPECT_NO_THROW(model->encode(ragged_of(Sentences{{4, 5, 2}}), {}));
  try {
    model->encode(ragged_of(Sentences{{4, 5, 6, 2}}), {});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("model.max_positions, 3"), std::string::npos) << error.what();
  }
}

TEST(Positions, OfOtherKindsHaveNoLimit) {
  ModelOptions options = small_options();
  EXPECT_EQ(small_model(options)->max_positions(), 0);
  options.positions = Positions::kNone;
  EXPECT_EQ(small_model(options)->max_positions(), 0);
}

TEST(Positions, ChangeWhatTheModelSays) {
  const auto log_probs = [](Positions positions, PositionLayout layout = PositionLayout::kInterleaved) {
    ModelOptions options = small_options();
    options.positions = positions;
    options.position_layout = layout;
    return small_model(options)->token_log_probs(ragged_of(some_sources()), ragged_of(some_targets()));
  };
  EXPECT_FALSE(log_probs(Positions::kNone).equal(log_probs(Positions::kSinusoidal)));
  EXPECT_FALSE(log_probs(Positions::kSinusoidal).equal(log_probs(Positions::kSinusoidal, PositionLayout::kConcatenated)));
}

TEST(Positions, NoneLeaveTheEncoderBlindToTheOrderOfTokens) {
  ModelOptions options = small_options();
  options.positions = Positions::kNone;
  const auto model = small_model(options);
  const Tensor one = model->encode(ragged_of(Sentences{{4, 5, 6, 2}}), {}).values;
  const Tensor other = model->encode(ragged_of(Sentences{{6, 5, 4, 2}}), {}).values;
  EXPECT_LT((one[0] - other[2]).abs().max().item<double>(), 1e-5);
  EXPECT_LT((one[2] - other[0]).abs().max().item<double>(), 1e-5);
}

}  // namespace
}  // namespace lacuna
