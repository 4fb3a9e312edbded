#include "analysis/importance.h"

#include "small_analysis.h"

namespace lacuna {
namespace {

SentencePair a_pair() {
  SentencePair pair;
  pair.src = {5, 9, 14, 2};
  pair.tgt = {6, 4, 11, 2};
  return pair;
}

/// p(y_t) of each target token: [Tt].
Tensor probabilities(Transformer& model, const Tensor& memory, const SentencePair& pair) {
  const at::NoGradGuard no_gradients;
  const Ragged tgt = ragged_of({pair.tgt});
  const auto shape = std::make_shared<const RaggedShape>(RaggedShape::of_lengths({static_cast<int32_t>(pair.src.size())}));
  const Tensor logits = model.decode({memory, shape}, tgt, {}).values.matmul(model.output_weight().t());
  return at::softmax(logits, 1).gather(1, tgt.values.unsqueeze(1)).squeeze(1);
}

TEST(GradientImportance, IsTheNormOfFiniteDifferences) {
  const auto model = small_model_with("softmax");
  model->to(at::kDouble);
  const SentencePair pair = a_pair();
  Tensor memory;
  {
    const at::NoGradGuard no_gradients;
    memory = model->encode(ragged_of({pair.src}), {}).values;
  }
  const Tensor squares = at::zeros({4, 4}, at::kDouble);
  constexpr double kStep = 1e-5;
  for (int64_t i = 0; i < memory.size(0); ++i) {
    for (int64_t feature = 0; feature < memory.size(1); ++feature) {
      Tensor above = memory.clone(), below = memory.clone();
      above[i][feature] += kStep;
      below[i][feature] -= kStep;
      const Tensor slope = (probabilities(*model, above, pair) - probabilities(*model, below, pair)) / (2 * kStep);
      squares.select(1, i).add_(slope.square());
    }
  }
  const Tensor found = gradient_importance(*model, pair, 1000).to(at::kDouble);
  EXPECT_LT(difference(found, squares.sqrt()), 1e-5);
}

TEST(GradientImportance, IsTheSameInSmallBatches) {
  const auto model = small_model_with("softmax");
  EXPECT_LT(difference(gradient_importance(*model, a_pair(), 5), gradient_importance(*model, a_pair(), 1000)), 1e-5);
}

TEST(ImportanceCorrelation, HasARowForEachTargetToken) {
  const auto model = small_model_with("softmax");
  std::vector<ImportanceCorrelation> layers(2);
  correlate_importance(*model, a_pair(), 1000, false, layers);
  for (const ImportanceCorrelation& layer : layers) {
    EXPECT_EQ(layer.attention.rows + layer.attention.undefined, 4);
    EXPECT_EQ(layer.mask.rows + layer.mask.undefined, 0);
    EXPECT_LE(std::abs(layer.attention.mean().value()), 1);
  }
}

}  // namespace
}  // namespace lacuna
