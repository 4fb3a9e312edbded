#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "attention/registry.h"
#include "config/yaml.h"
#include "model/calibrated/calibrated_attention.h"

// What a calibrated layer makes of the base's weights and of its mask's scores. (Whole models are held against an independent algorithm in
// golden_test.cpp.)
namespace lacuna {
namespace {

constexpr double kByHandTolerance = 1e-6;

std::shared_ptr<const AttentionType> calibrated(const std::string& options) {
  ConfigNode node = parse_yaml(options, "test");
  node.set("type", ConfigNode::scalar("calibrated"));
  return make_attention_type(node, 1);
}

/// One head and two alike queries over keys whose scores, and the mask's, are given; the values are unit vectors, so that the context is
/// the weights.
struct Layer {
  Layer(const std::string& options, const std::vector<double>& scores, const std::vector<double>& mask_scores, double gate = 0)
      : type(calibrated(options)) {
    const auto n = static_cast<int64_t>(scores.size());
    ModelOptions model;
    model.d_model = n;
    model.num_heads = 1;
    attention = CalibratedAttention::create(parent, type, model, ParameterPath(1));
    const at::NoGradGuard no_gradients;
    for (auto& item : parent.named_parameters())
      item.value().copy_(item.key().starts_with("mask") ? at::eye(n) : at::zeros_like(item.value()));
    if (Tensor* bias = parent.named_parameters().find("gate.bias")) bias->fill_(gate);
    const auto keys_of = [&](const std::vector<double>& of) {
      const Tensor keys = at::zeros({n, 1, n});
      for (int64_t j = 0; j < n; ++j) keys[j][0][0].fill_(of[static_cast<size_t>(j)]);
      return keys;
    };
    x = at::eye(n)[0].expand({2, n}).contiguous();
    mask_keys = keys_of(mask_scores);
    call.q = x.unsqueeze(1);
    call.k = keys_of(scores);
    call.v = at::eye(n).unsqueeze(1);
    call.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({2}));
    call.keys = std::make_shared<KeyRange>(KeyRange::of(RaggedShape::of_lengths({static_cast<int32_t>(n)})));
    call.type = type.get();
  }

  std::vector<double> weights(const ForwardContext& context = {}) {
    const Tensor row = attention->forward(call, x, mask_keys, context)[1][0].to(at::kDouble).contiguous();
    return {row.const_data_ptr<double>(), row.const_data_ptr<double>() + row.numel()};
  }

  std::shared_ptr<const AttentionType> type;
  torch::nn::Module parent;
  std::shared_ptr<CalibratedAttention> attention;
  AttentionCall call;
  Tensor x, mask_keys;
};

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t j = 0; j < found.size(); ++j) EXPECT_NEAR(found[j], expected[j], 3 * kByHandTolerance) << j;
}

const double kThree = std::log(3.0), kE = std::exp(1.0);
constexpr double kFar = 1000;  // the mask is .5 at 0, .75 at log 3, 1 far above and 0 far below

struct Example {
  std::string options;
  std::vector<double> scores, mask_scores, weights;
  double gate = 0;
  int64_t step = 0;
};

std::vector<Example> examples() {
  const double gamma = std::exp(-2.0), root = std::sqrt(kE);
  return {
      {"{combine: gate}", {0, kThree}, {kFar, kFar}, {.25, .75}},
      {"{}", {0, kThree}, {kFar, -kFar}, {.25, .75 * (.5 + .5 * kE)}},
      {"{}", {0, kThree}, {-kFar, kFar}, {.25 * (.75 + .25 * kE), .75}, kThree},
      {"{combine: anneal}", {0, kThree}, {0, -kFar}, {.25, .75}},
      {"{combine: anneal, anneal_steps: 1000}",
       {0, kThree},
       {-kFar, 0},
       {.25 * (gamma + (1 - gamma) * kE), .75 * (gamma + (1 - gamma) * root)},
       0,
       2000},
      {"{combine: fixed}", {7, 7}, {2, 2}, {.5, .5}},
      {"{combine: fixed}", {0, kThree}, {kFar, kFar}, {1 / (1 + kE), kE / (1 + kE)}},
      {"{combine: fixed, lambda: 2}", {0, std::log(2.0)}, {kFar, kFar}, {1 / (1 + kE), kE / (1 + kE)}},
      {"{base: rela}", {-2, -1}, {1, 2}, {0, 0}},
      {"{base: sparsemax}", {-2, 0, .5}, {0, kFar, -kFar}, {0, .25, .75 * kE}, -kFar},
      {"{base: {type: entmax, alpha: 1.3}}", {3}, {kFar}, {1}, 1},
  };
}

TEST(CalibratedWeights, AreThoseOfWorkedExamples) {
  for (const Example& example : examples()) {
    SCOPED_TRACE(example.options);
    Layer layer(example.options, example.scores, example.mask_scores, example.gate);
    expect_near(layer.weights({.step = example.step}), example.weights);
    const at::NoGradGuard no_gradients;
    expect_near(layer.weights({.step = example.step}), example.weights);
  }
}

TEST(CalibratedWeights, ArePerturbedInTheMaskPass) {
  MaskPass pass;
  Layer layer("{mask_penalty: 2}", {0, kThree}, {kThree, -kThree});  // m = 3/4, 1/4
  layer.attention->set_pass(&pass);
  expect_near(layer.weights(), {.3125, .5625});
  ASSERT_EQ(pass.penalties.size(), 1U);
  EXPECT_NEAR(pass.penalties[0].mean().item<double>(), 2 * std::sqrt((.0625 + .5625) / 2), kByHandTolerance);
  EXPECT_NEAR(pass.mean_masks[0].mean().item<double>(), .5, kByHandTolerance);
  Layer null("{base: rela}", {-2, -1}, {1, 2});
  null.attention->set_pass(&pass);
  expect_near(null.weights(), {0, 0});
  Layer alone("{}", {3}, {-1});
  alone.attention->set_pass(&pass);
  expect_near(alone.weights(), {1});  // there is nothing to perturb with one key
}

TEST(CalibratedWeights, TakeTheMaskAsAConstantButInTheMaskPass) {
  for (const bool is_mask_pass : {false, true}) {
    Layer layer("{}", {0, kThree}, {kThree, -kThree});
    MaskPass pass;
    if (is_mask_pass) layer.attention->set_pass(&pass);
    layer.call.q.requires_grad_();
    layer.attention->forward(layer.call, layer.x, layer.mask_keys, {.training = true}).select(2, 0).sum().backward();
    EXPECT_GT(layer.call.q.grad().abs().max().item<double>(), 0);
    const Tensor gradient = layer.parent.named_parameters()["mask.query.weight"].grad();
    EXPECT_EQ(gradient.defined() && gradient.abs().max().item<double>() > 0, is_mask_pass);
  }
}

TEST(CalibratedWeights, GiveContextZeroToAQueryThatSeesNoKey) {
  for (const char* options : {"{}", "{combine: fixed}", "{combine: anneal}", "{base: sparsemax}"}) {
    for (const bool is_mask_pass : {false, true}) {
      Layer layer(options, {0, 1}, {1, 2});
      MaskPass pass;
      if (is_mask_pass) layer.attention->set_pass(&pass);
      layer.call.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({1, 1}));
      KeyRange keys;
      keys.begin = {0, 2};
      keys.count = {2, 0};
      layer.call.keys = std::make_shared<KeyRange>(keys);
      layer.call.q.requires_grad_();
      const Tensor context = layer.attention->forward(layer.call, layer.x, layer.mask_keys, {.training = true});
      EXPECT_EQ(context[1].abs().max().item<double>(), 0) << options;
      context.sum().backward();
      EXPECT_TRUE(layer.call.q.grad().isfinite().all().item<bool>()) << options;
    }
  }
}

/// Keeps the rows that it sees.
struct Rows : AttentionProbe {
  void see(int, AttentionSite, int, int64_t, int64_t query, std::span<const float> row, std::span<const int32_t> keys) override {
    weights[query] = {row.begin(), row.end()};
    EXPECT_EQ(keys.size(), row.size());
  }
  void see_original(int, AttentionSite, int, int64_t, int64_t query, std::span<const float> original, std::span<const float> mask,
                    std::span<const int32_t>) override {
    const double gamma = std::exp(-.7);
    for (size_t j = 0; j < original.size(); ++j)
      EXPECT_NEAR(weights.at(query)[j], original[j] * (gamma + (1 - gamma) * std::exp(1 - mask[j])), 1e-5);
    ++count;
  }
  void see_number(int, AttentionSite, const std::string& name, std::span<const double>) override { EXPECT_EQ(name, "gate"); }
  std::map<int64_t, std::vector<double>> weights;
  int count = 0;
};

TEST(CalibratedWeights, AreShownToAProbeWithWhatTheyWereMadeOf) {
  Layer layer("{combine: anneal, anneal_steps: 10, pattern: {type: atrous, stride: 2}}", {0, 1, 2}, {1, -1, .5});
  Rows rows;
  layer.weights({.step = 7, .probe = &rows});
  EXPECT_EQ(rows.count, 2);
  EXPECT_EQ(rows.weights.at(0).size(), 2u);
  EXPECT_EQ(rows.weights.at(1).size(), 1u);
}

}  // namespace
}  // namespace lacuna
