#include <cmath>

#include "model/embedding.h"
#include "small_model.h"

namespace lacuna {
namespace {

ModelOptions of_six_features(PositionLayout layout = PositionLayout::kInterleaved) {
  ModelOptions options;
  options.d_model = 6;
  options.position_layout = layout;
  return options;
}

TEST(SinusoidalPositions, InterleavedAreThePapers) {
  const Tensor table = sinusoidal_positions(4, of_six_features());
  EXPECT_NEAR(table[3][2].item<double>(), std::sin(3 / std::pow(10000, 2.0 / 6)), 1e-15);
  EXPECT_NEAR(table[3][3].item<double>(), std::cos(3 / std::pow(10000, 2.0 / 6)), 1e-15);
}

TEST(SinusoidalPositions, ConcatenatedHaveAllSinesFirst) {
  const Tensor turns = sinusoidal_positions(4, of_six_features()),
               halves = sinusoidal_positions(4, of_six_features(PositionLayout::kConcatenated));
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(halves[3][i].item<double>(), turns[3][2 * i].item<double>());
    EXPECT_EQ(halves[3][3 + i].item<double>(), turns[3][2 * i + 1].item<double>());
  }
}

// Values by NumPy, as Tensor2Tensor writes it: exp(-i log(10000) / (D/2 - 1)).
TEST(SinusoidalPositions, OfTensor2TensorDivideByOneFrequencyFewer) {
  ModelOptions options = of_six_features(PositionLayout::kConcatenated);
  options.position_spacing = PositionSpacing::kTensor2Tensor;
  const Tensor expected = at::tensor(
      {0.1411200080598672, 0.029995500202495647, 0.0002999999954999997, -0.9899924966004454, 0.9995500337489875, 0.9999999550000004},
      at::kDouble);
  EXPECT_LT((sinusoidal_positions(4, options)[3] - expected).abs().max().item<double>(), 1e-15);
}

TEST(SinusoidalPositions, StartWhereTheyAreTold) {
  ModelOptions options = of_six_features();
  const Tensor from_0 = sinusoidal_positions(6, options);
  options.position_start = 2;
  EXPECT_TRUE(sinusoidal_positions(4, options).equal(from_0.narrow(0, 2, 4)));
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
  for (const Positions positions : {Positions::kSinusoidal, Positions::kRope, Positions::kNone}) {
    ModelOptions options = small_options();
    options.positions = positions;
    EXPECT_EQ(small_model(options)->max_positions(), 0);
  }
}

TEST(Positions, ChangeWhatTheModelSays) {
  const auto log_probs = [](Positions positions, PositionLayout layout = PositionLayout::kInterleaved) {
    ModelOptions options = small_options();
    options.positions = positions;
    options.position_layout = layout;
    return small_model(options)->token_log_probs(ragged_of(some_sources()), ragged_of(some_targets()));
  };
  EXPECT_FALSE(log_probs(Positions::kNone).equal(log_probs(Positions::kSinusoidal)));
  EXPECT_FALSE(log_probs(Positions::kNone).equal(log_probs(Positions::kRope)));
  EXPECT_FALSE(log_probs(Positions::kRope).equal(log_probs(Positions::kRope, PositionLayout::kConcatenated)));
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
