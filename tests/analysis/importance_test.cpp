#include "analysis/importance.h"

#include "golden.h"
#include "model/calibrated/calibrated_attention.h"
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

/// The model of tests/golden/transformer_post_norm.json.
std::shared_ptr<Transformer> golden_model(at::ScalarType dtype) {
  std::ifstream file(LACUNA_SOURCE_DIR "/tests/golden/transformer_post_norm.json");
  const json golden = json::parse(file);
  ModelOptions options = small_options(NormPlace::kPost);
  options.d_model = 8;
  options.d_ff = 12;
  auto model = std::make_shared<Transformer>(options, VocabularySizes{11, 11, true}, 1);
  model->to(dtype);
  const at::NoGradGuard no_gradients;
  auto parameters = model->named_parameters();
  for (const auto& [name, one] : golden.at("parameters").items()) {
    const auto values = one.at("values").get<std::vector<double>>();
    parameters[name].copy_(at::tensor(values, at::kDouble).view(one.at("shape").get<std::vector<int64_t>>()));
  }
  return model;
}

Tensor matrix_of(const json& rows) {
  std::vector<Tensor> tensors;
  tensors.reserve(rows.size());
  for (const json& row : rows) tensors.push_back(at::tensor(row.get<std::vector<double>>(), at::kDouble));
  return at::stack(tensors);
}

TEST(GradientImportance, AndItsRankCorrelationsAreNumPys) {
  const auto exact = golden_model(at::kDouble), model = golden_model(at::kFloat);
  for (const json& golden : analysis_golden().at("importance")) {
    SentencePair pair;
    pair.src = golden.at("src").get<std::vector<TokenId>>();
    pair.tgt = golden.at("tgt").get<std::vector<TokenId>>();
    const Tensor expected = matrix_of(golden.at("norms"));
    const Tensor found = gradient_importance(*exact, pair, 1000).to(at::kDouble);
    EXPECT_LT(((found - expected) / expected).abs().max().item<double>(), 1e-4);  // the softmax is in float
    std::vector<ImportanceCorrelation> layers(2);
    correlate_importance(*model, pair, 1000, false, layers);
    for (size_t layer = 0; layer < layers.size(); ++layer)
      EXPECT_NEAR(layers[layer].attention.mean().value(), golden.at("tau_b")[layer].get<double>(), 1e-9);
  }
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
    EXPECT_TRUE(layer.original.is_empty() && layer.mask.is_empty());
    EXPECT_LE(std::abs(layer.attention.mean().value()), 1);
  }
}

/// A model of calibrated attention with the parameters of its mask model times `factor`.
std::vector<ImportanceCorrelation> correlations_of_calibrated(double factor) {
  const auto model = small_model_with("{cross: {type: calibrated, combine: anneal, anneal_steps: 1}}");
  model->set_step(100);  // nothing is left of the plain weights
  {
    const at::NoGradGuard no_gradients;
    for (auto& item : model->named_parameters())
      if (is_mask_parameter(item.key())) item.value().mul_(factor);
  }
  std::vector<ImportanceCorrelation> layers(2);
  correlate_importance(*model, a_pair(), 1000, true, layers);
  return layers;
}

TEST(ImportanceCorrelation, IsOfAttentionBeforeAndAfterCalibrationAndOfTheMask) {
  for (const ImportanceCorrelation& layer : correlations_of_calibrated(10)) {
    for (const RankCorrelation* one : {&layer.attention, &layer.original, &layer.mask}) EXPECT_EQ(one->rows, 4);
    EXPECT_NE(layer.attention.sum, layer.original.sum);
  }
  for (const ImportanceCorrelation& layer : correlations_of_calibrated(0)) {  // all masks are .5, which moves nothing
    EXPECT_EQ(layer.attention.sum, layer.original.sum);
    EXPECT_EQ(layer.mask.undefined, 4);
  }
}

}  // namespace
}  // namespace lacuna
