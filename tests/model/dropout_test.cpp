#include <cmath>
#include <set>

#include "model/embedding.h"
#include "small_model.h"

// Where a model drops what, and that it does.
namespace lacuna {
namespace {

struct DropoutCase {
  const char* name;
  double ModelOptions::*rate;
};

class DropoutRate : public testing::TestWithParam<DropoutCase> {
 protected:
  void SetUp() override {
    ModelOptions options = small_options();
    options.*GetParam().rate = 0.5;
    model_ = small_model(options);
  }
  std::shared_ptr<Transformer> model_, without_ = small_model(small_options());
};
INSTANTIATE_TEST_SUITE_P(, DropoutRate,
                         testing::Values(DropoutCase{"Features", &ModelOptions::dropout},
                                         DropoutCase{"Attention", &ModelOptions::attention_dropout},
                                         DropoutCase{"Activation", &ModelOptions::activation_dropout}),
                         [](const auto& test) { return std::string(test.param.name); });

double loss_of(Transformer& model, const ForwardContext& context) {
  return model.loss(ragged_of(some_sources()), ragged_of(some_targets()), 0, context).loss.item<double>();
}

ForwardContext training(int64_t step = 1) {
  return {.training = true, .seed = 1, .step = step};
}

TEST_P(DropoutRate, ChangesTheLossInTraining) {
  EXPECT_GT(std::abs(loss_of(*model_, training()) - loss_of(*without_, training())), 1e-2);
}

TEST_P(DropoutRate, DropsNothingOutsideOfTraining) {
  EXPECT_EQ(loss_of(*model_, ForwardContext()), loss_of(*without_, ForwardContext()));
}

TEST_P(DropoutRate, DropsOthersInEachStep) {
  EXPECT_EQ(loss_of(*model_, training(1)), loss_of(*model_, training(1)));
  EXPECT_NE(loss_of(*model_, training(1)), loss_of(*model_, training(2)));
}

TEST_P(DropoutRate, DropsTheSameWhereNoGradientIsWanted) {
  const double with_gradients = loss_of(*model_, training());
  const at::NoGradGuard guard;
  EXPECT_NEAR(loss_of(*model_, training()), with_gradients, 1e-4);
}

TEST(Dropout, HasNumbersOfItsOwnAtEachSiteSeedAndStep) {
  std::set<uint64_t> keys;
  for (const Stack stack : {Stack::kEncoder, Stack::kDecoder})
    for (const int layer : {0, 1, 2, 300})
      for (const DropoutPlace place : {DropoutPlace::kEmbedding, DropoutPlace::kSelfAttention, DropoutPlace::kCrossAttention,
                                       DropoutPlace::kFeedForward, DropoutPlace::kActivation})
        for (const uint64_t seed : {1, 2})
          for (const int64_t step : {0, 1, 7})
            keys.insert(DropoutSite{stack, layer, place}.dropout(0.5, {}, {.training = true, .seed = seed, .step = step}).key);
  EXPECT_EQ(keys.size(), 2u * 4u * 5u * 2u * 3u);
}

TEST(Dropout, HasNoRateAtASiteOutsideOfTraining) {
  EXPECT_EQ((DropoutSite{Stack::kEncoder, 0, DropoutPlace::kActivation}.dropout(0.5, {}, {}).rate), 0);
}

/// An embedding of one token over and over in two sentences, [400, 16].
Tensor embedded(double rate, Stack stack, const ForwardContext& context) {
  const ModelOptions options = small_options();
  Embedding embedding(std::make_shared<EmbeddingTable>(kSmallVocabulary, 16, ParameterPath(1)),
                      std::make_shared<PositionTable>(options, ParameterPath(2)), rate, stack);
  return embedding.forward(ragged_of(Sentences(2, std::vector<int32_t>(200, 5))), context).values.detach();
}

TEST(Dropout, OfAnEmbeddingIsZeroOrScalesByWhatIsKept) {
  const Tensor whole = embedded(0, Stack::kEncoder, training()), dropped = embedded(0.25, Stack::kEncoder, training());
  const Tensor is_kept = dropped != 0;
  EXPECT_NEAR(is_kept.to(at::kDouble).mean().item<double>(), 0.75, 0.02);  // 3.7 standard deviations
  EXPECT_LT(difference(dropped, whole * is_kept / 0.75), 1e-6);
  EXPECT_FALSE(is_kept.narrow(0, 0, 200).equal(is_kept.narrow(0, 200, 200)));  // of the two sentences
}

TEST(Dropout, OfAnEmbeddingDiffersBetweenStacksAndIsNoneOutsideOfTraining) {
  const Tensor of_encoder = embedded(0.25, Stack::kEncoder, training());
  EXPECT_FALSE(of_encoder.equal(embedded(0.25, Stack::kDecoder, training())));
  EXPECT_TRUE(embedded(0.25, Stack::kEncoder, {}).equal(embedded(0, Stack::kEncoder, {})));
}

}  // namespace
}  // namespace lacuna
