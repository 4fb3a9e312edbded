#include "config/yaml.h"
#include "small_model.h"

// The attention type `span` in a model: what it learns, and its penalty.
namespace lacuna {
namespace {

const std::string kPerHead = "{type: span, max_span: 8, span_init: 1.25, ramp: 2, penalty: 0.01}";
const std::string kDynamic = "{type: span, span: dynamic, max_span: 8, span_init: 1.25, ramp: 2, penalty: 0.02}";

std::shared_ptr<Transformer> model_of_spans(const std::string& encoder_self, const std::string& decoder_self) {
  ModelOptions options = small_options();
  options.attention = parse_yaml("{encoder_self: " + encoder_self + ", decoder_self: " + decoder_self + "}", "test");
  const auto model = small_model(options);
  const at::NoGradGuard guard;
  at::manual_seed(9);
  for (auto& item : model->named_parameters())
    if (item.key().ends_with(".span_weight")) item.value().normal_(0, 0.2);
  return model;
}

LossSums loss_of(Transformer& model, const Sentences& sources, const Sentences& targets, bool training = true) {
  return model.loss(ragged_of(sources), ragged_of(targets), 0.1, {.training = training});
}

bool is_of_span(const std::string& parameter) {
  return parameter.find(".numbers.span_") != std::string::npos;
}

TEST(Spans, AreParametersOfTheLayersThatHaveThem) {
  std::map<std::string, std::vector<int64_t>> found;
  for (const auto& item : model_of_spans(kPerHead, kDynamic)->named_parameters())
    if (is_of_span(item.key())) found[item.key()] = item.value().sizes().vec();
  const std::map<std::string, std::vector<int64_t>> expected = {
      {"encoder.layers.0.self_attention.numbers.span_ratio", {2}},      {"encoder.layers.1.self_attention.numbers.span_ratio", {2}},
      {"decoder.layers.0.self_attention.numbers.span_weight", {2, 16}}, {"decoder.layers.0.self_attention.numbers.span_bias", {2}},
      {"decoder.layers.1.self_attention.numbers.span_weight", {2, 16}}, {"decoder.layers.1.self_attention.numbers.span_bias", {2}}};
  EXPECT_EQ(found, expected);
}

TEST(Spans, OfHeadsHaveARange) {
  std::vector<std::string> names;
  for (const ParameterRange& range : model_of_spans(kPerHead, kDynamic)->parameter_ranges()) {
    names.push_back(range.name);
    EXPECT_EQ(range.lowest, 0);
    EXPECT_EQ(range.highest, 1);
  }
  EXPECT_EQ(names, std::vector<std::string>(
                       {"encoder.layers.0.self_attention.numbers.span_ratio", "encoder.layers.1.self_attention.numbers.span_ratio"}));
}

TEST(Spans, HaveTheGradientOfFiniteDifferencesWithTheirPenalty) {
  const auto model = model_of_spans(kPerHead, kDynamic);
  const auto loss = [&] { return loss_of(*model, some_sources(), some_targets()).loss; };
  expect_gradients_of_finite_differences(*model, is_of_span, loss, 1e-6);
}

TEST(Spans, CostTheirPenaltyForEachTargetToken) {
  const auto model = model_of_spans(kPerHead, "softmax");
  const LossSums sums = loss_of(*model, some_sources(), some_targets());
  EXPECT_EQ(sums.tokens, 9);
  EXPECT_NEAR(sums.penalty.item<double>(), 9 * 2 * 0.01 * 1.25, 1e-6);  // of two layers
  EXPECT_FALSE(sums.penalty.requires_grad());
}

TEST(Spans, CostNothingOutsideOfTraining) {
  const auto model = model_of_spans(kPerHead, kDynamic);
  const LossSums training = loss_of(*model, some_sources(), some_targets());
  const at::NoGradGuard guard;
  const LossSums validation = loss_of(*model, some_sources(), some_targets(), false);
  EXPECT_FALSE(validation.penalty.defined());
  EXPECT_GT(training.penalty.item<double>(), 0.1);
  EXPECT_NEAR(validation.loss.item<double>(), (training.loss - training.penalty).item<double>(), 1e-4);
  EXPECT_NEAR(validation.nll.item<double>(), training.nll.item<double>(), 1e-4);
}

TEST(Spans, CostTheSameHoweverSentencesAreBatched) {
  const auto model = model_of_spans(kDynamic, kDynamic);
  model->to(at::kDouble);
  double sum = 0;
  for (size_t b = 0; b < some_sources().size(); ++b)
    sum += loss_of(*model, {some_sources()[b]}, {some_targets()[b]}).penalty.item<double>();
  EXPECT_NEAR(loss_of(*model, some_sources(), some_targets()).penalty.item<double>(), sum, 1e-10);
}

TEST(Spans, AreNoPartOfALossWithoutAny) {
  const auto model = model_of_spans("softmax", "{type: span, penalty: 0}");
  EXPECT_FALSE(loss_of(*model, some_sources(), some_targets()).penalty.defined());
}

LossSums loss_of_copying_with_spans(Transformer& model) {
  return loss_of(model, some_to_copy(), some_to_copy());
}

/// Trains the model and returns its loss afterwards.
LossSums loss_once_trained(Transformer& model) {
  train(model, [&] { loss_of_copying_with_spans(model).loss.backward(); });
  return loss_of_copying_with_spans(model);
}

TEST(Spans, OfHeadsShrinkToNothingUnderAHighPenaltyWhileTheModelLearns) {
  const std::string span = "{type: span, max_span: 8, span_init: 1.25, penalty: 10}";
  const auto model = model_of_spans(span, span);
  const LossSums before = loss_of_copying_with_spans(*model), after = loss_once_trained(*model);
  EXPECT_LT(after.nll.item<double>(), 0.5 * before.nll.item<double>());
  EXPECT_GT(before.penalty.item<double>(), 0);
  EXPECT_EQ(after.penalty.item<double>(), 0);
}

TEST(Spans, OfQueriesShrinkUnderAHighPenaltyWhileTheModelLearns) {
  const std::string span = "{type: span, span: dynamic, max_span: 8, span_init: 1.25, penalty: 1}";
  const auto model = model_of_spans(span, span);
  const LossSums before = loss_of_copying_with_spans(*model), after = loss_once_trained(*model);
  EXPECT_LT(after.nll.item<double>(), before.nll.item<double>());
  EXPECT_LT(after.penalty.item<double>(), 0.8 * before.penalty.item<double>());
}

TEST(Spans, AreShownToAProbe) {
  const auto model = model_of_spans(kPerHead, kDynamic);
  NumbersProbe probe;
  const at::NoGradGuard guard;
  model->loss(ragged_of(some_sources()), ragged_of(some_targets()), 0, {.probe = &probe});
  EXPECT_EQ(probe.seen.size(), 4u);
  EXPECT_EQ(probe.seen["encoder_self 1 span"], std::vector<double>({1.25, 1.25}));
  ASSERT_EQ(probe.seen["decoder_self 0 span"].size(), 2u);  // the mean over queries
  for (const double mean : probe.seen["decoder_self 0 span"]) EXPECT_TRUE(mean > 0 && mean < 8) << mean;
}

}  // namespace
}  // namespace lacuna
