#include <cmath>

#include "small_model.h"

namespace lacuna {
namespace {

std::map<std::string, Tensor> weights_of(const ModelOptions& options, uint64_t seed) {
  std::map<std::string, Tensor> weights;
  for (const auto& item : small_model(options, seed)->named_parameters()) weights[item.key()] = item.value();
  return weights;
}

TEST(Initialization, DependsOnTheSeedAlone) {
  const auto first = weights_of(small_options(), 1), again = weights_of(small_options(), 1), other = weights_of(small_options(), 2);
  for (const auto& [name, weight] : first) EXPECT_TRUE(weight.equal(again.at(name))) << name;
  EXPECT_FALSE(first.at("embedding.weight").equal(other.at("embedding.weight")));
}

TEST(Initialization, OfAParameterDoesNotDependOnTheOthers) {
  ModelOptions deeper = small_options();
  deeper.encoder_layers = 4;
  const auto less = weights_of(small_options(), 1), more = weights_of(deeper, 1);
  for (const auto& [name, weight] : less) EXPECT_TRUE(weight.equal(more.at(name))) << name;
}

TEST(Initialization, DiffersFromLayerToLayer) {
  const auto weights = weights_of(small_options(), 1);
  EXPECT_FALSE(weights.at("encoder.layers.0.feed_forward.inner.weight").equal(weights.at("encoder.layers.1.feed_forward.inner.weight")));
}

void expect_uniform(const Tensor& weight, double bound) {
  EXPECT_LE(weight.abs().max().item<double>(), bound);
  EXPECT_NEAR(weight.std().item<double>(), bound / std::sqrt(3.0), 0.02 * bound);
}

TEST(Initialization, OfMatricesIsXavierOfEachOfThem) {
  ModelOptions options = small_options();
  options.d_model = 64;
  options.d_ff = 192;
  const auto weights = weights_of(options, 1);
  expect_uniform(weights.at("encoder.layers.0.self_attention.output.weight"), std::sqrt(6.0 / 128));
  expect_uniform(weights.at("encoder.layers.0.feed_forward.inner.weight"), std::sqrt(6.0 / 256));
}

void expect_attention_begins(const ModelOptions& options, double bound) {
  const auto weights = weights_of(options, 1);
  for (const char* name : {"encoder.layers.0.self_attention.qkv", "decoder.layers.0.self_attention.qkv",
                           "decoder.layers.0.cross_attention.query", "decoder.layers.0.cross_attention.key_value"})
    expect_uniform(weights.at(std::string(name) + ".weight"), bound);
  expect_uniform(weights.at("encoder.layers.0.self_attention.output.weight"), std::sqrt(6.0 / 128));
}

TEST(Initialization, OfQueriesKeysAndValuesIsSmallerByRootTwoOrAsTheOptionSays) {
  ModelOptions options = small_options();
  options.d_model = 64;
  expect_attention_begins(options, std::sqrt(3.0 / 128));
  options.attention_init_gain = 0.25;
  expect_attention_begins(options, 0.25 * std::sqrt(6.0 / 128));
}

TEST(Initialization, OfEmbeddingsHasDeviationOneOverRootOfD) {
  ModelOptions options = small_options();
  options.d_model = 256;
  const auto weights = weights_of(options, 1);
  EXPECT_NEAR(weights.at("embedding.weight").std().item<double>(), 1.0 / 16, 0.002);
}

}  // namespace
}  // namespace lacuna
