#include <cmath>

#include "config/yaml.h"
#include "model/calibrated/calibrated_attention.h"
#include "small_model.h"

namespace lacuna {
namespace {

constexpr const char* kBothSites = "{decoder_self: {type: calibrated}, cross: {type: calibrated, base: sparsemax}}";

std::shared_ptr<Transformer> calibrated_model(const std::string& attention, double dropout = 0) {
  ModelOptions options = small_options();
  options.attention = parse_yaml(attention, "test");
  options.dropout = options.attention_dropout = dropout;
  return small_model(options);
}

double perturbed_loss(const LossSums& sums) {
  for (const auto& [name, sum] : sums.auxiliary.values)
    if (name == "mask_perturbed_loss") return sum.item<double>();
  return NAN;
}

LossSums loss_of(Transformer& model, int64_t step = 1) {
  return model.loss(ragged_of(some_sources()), ragged_of(some_targets()), 0.1, {.training = true, .seed = 1, .step = step});
}

double size_of(const Tensor& gradient) {
  return gradient.abs().max().item<double>();
}

TEST(CalibratedTransformer, NamesItsMaskModelsAndGates) {
  const auto model = calibrated_model("{decoder_self: {layers: {1: {type: calibrated, combine: anneal}}}, cross: {type: calibrated}}");
  std::vector<std::string> names;
  for (const auto& item : model->named_parameters())
    if (is_mask_parameter(item.key()) || item.key().find(".gate.") != std::string::npos) names.push_back(item.key());
  std::sort(names.begin(), names.end());
  const std::string cross = ".cross_attention.", layers[] = {"decoder.layers.0", "decoder.layers.1"};
  std::vector<std::string> expected = {layers[1] + ".self_attention.mask.key.weight", layers[1] + ".self_attention.mask.query.weight"};
  for (const std::string& layer : layers)
    for (const char* name : {"gate.bias", "gate.weight", "mask.key.weight", "mask.query.weight"}) expected.push_back(layer + cross + name);
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(names, expected);
  EXPECT_EQ(model->named_parameters()["decoder.layers.0.cross_attention.gate.weight"].sizes(), at::IntArrayRef({2, 16}));
}

TEST(CalibratedTransformer, GivesMaskModelsNoGradientInTheTranslationPass) {
  const auto model = calibrated_model(kBothSites);
  loss_of(*model).loss.backward();
  for (const auto& [name, gradient] : take_gradients(*model)) {
    if (is_mask_parameter(name)) {
      EXPECT_EQ(size_of(gradient), 0) << name;
    } else {
      EXPECT_GT(size_of(gradient), 0) << name;
    }
  }
}

TEST(CalibratedTransformer, GivesNoOthersAGradientInTheMaskPass) {
  const auto model = calibrated_model(kBothSites, 0.2);
  const LossSums sums = loss_of(*model);
  ASSERT_TRUE(sums.has_auxiliary());
  sums.auxiliary.objective.backward();
  for (const auto& [name, gradient] : take_gradients(*model)) {
    if (is_mask_parameter(name)) {
      EXPECT_GT(size_of(gradient), 0) << name;
    } else {
      EXPECT_EQ(size_of(gradient), 0) << name;
    }
  }
  for (const auto& item : model->named_parameters()) EXPECT_TRUE(item.value().requires_grad()) << item.key();
}

TEST(CalibratedTransformer, HasTheGradientForMasksOfFiniteDifferences) {
  const auto model = calibrated_model(kBothSites, 0.2);
  expect_gradients_of_finite_differences(
      *model, is_mask_parameter, [&] { return loss_of(*model).auxiliary.objective; }, 1e-6);
}

TEST(CalibratedTransformer, MakesTheMaskPassWhereItIsDue) {
  const auto model = calibrated_model("{cross: {type: calibrated, mask_every: 3}}");
  EXPECT_FALSE(loss_of(*model, 1).has_auxiliary());
  EXPECT_FALSE(loss_of(*model, 2).has_auxiliary());
  EXPECT_TRUE(loss_of(*model, 3).has_auxiliary());
  EXPECT_FALSE(model->loss(ragged_of(some_sources()), ragged_of(some_targets()), 0, {.step = 3}).has_auxiliary());
  EXPECT_FALSE(loss_of(*small_model(small_options()), 3).has_auxiliary());
}

TEST(CalibratedTransformer, SeeksNoLossBeyondTheCap) {
  const auto model = calibrated_model("{cross: {type: calibrated, mask_loss_cap: 0.001, mask_penalty: 0}}");
  const LossSums sums = loss_of(*model);
  EXPECT_NEAR(sums.auxiliary.objective.item<double>(), -0.001 * static_cast<double>(sums.tokens), 1e-9);
  sums.auxiliary.objective.backward();
  for (const auto& [name, gradient] : take_gradients(*model)) EXPECT_EQ(size_of(gradient), 0) << name;
}

TEST(CalibratedTransformer, DropsTheSameInBothPasses) {
  const auto model = calibrated_model("{cross: {layers: {1: calibrated}}}", 0.3);
  const LossSums before = loss_of(*model);
  EXPECT_GT(std::abs(perturbed_loss(before) - before.loss.item<double>()), 1e-3);
  {
    const at::NoGradGuard guard;  // values of 0: whatever the weights, nothing comes of them
    auto parameters = model->named_parameters();
    for (const char* name : {"weight", "bias"}) parameters[std::string("decoder.layers.1.cross_attention.key_value.") + name].zero_();
  }
  const LossSums alike = loss_of(*model);
  EXPECT_NEAR(perturbed_loss(alike), alike.loss.item<double>(), 1e-4);
}

TEST(CalibratedTransformer, TranslatesByTheStepOfItsWeights) {
  const auto model = calibrated_model("{cross: {type: calibrated, combine: anneal, anneal_steps: 100}}");
  const auto softmax = small_model(small_options());
  const auto log_probs = [](Transformer& of) { return of.token_log_probs(ragged_of(some_sources()), ragged_of(some_targets())); };
  EXPECT_LT(difference(log_probs(*model), log_probs(*softmax)), 1e-6);  // gamma = 1: as if there were no mask
  model->set_step(100);
  const Tensor annealed = log_probs(*model);
  EXPECT_GT(difference(annealed, log_probs(*softmax)), 1e-4);
  const double training = loss_of(*model, 100).nll.item<double>();
  EXPECT_NEAR(-annealed.sum().item<double>(), training, 1e-4);
}

TEST(CalibratedTransformer, Learns) {
  const auto model = calibrated_model(kBothSites);
  const double before = loss_of(*model).nll.item<double>();
  train(*model, [&] { loss_of(*model).backward(); });
  EXPECT_LT(loss_of(*model).nll.item<double>(), 0.5 * before);
}

}  // namespace
}  // namespace lacuna
