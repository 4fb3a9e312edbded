#include <fstream>
#include <nlohmann/json.hpp>

#include "config/yaml.h"
#include "small_model.h"

namespace lacuna {
namespace {

using nlohmann::json;

json golden_of(const std::string& name) {
  std::ifstream file(LACUNA_SOURCE_DIR "/tests/golden/transformer_" + name + ".json");
  return json::parse(file);
}

ModelOptions options_of(const json& from) {
  ModelOptions options = small_options(from["norm"] == "pre" ? NormPlace::kPre : NormPlace::kPost);
  options.d_model = from["d_model"];
  options.num_heads = from["num_heads"];
  options.d_ff = from["d_ff"];
  options.decoder_d_ff = from.value("decoder_d_ff", 0);
  options.encoder_layers = from["encoder_layers"];
  options.decoder_layers = from["decoder_layers"];
  options.norm_type = from["norm_type"] == "rms" ? NormType::kRms : NormType::kLayer;
  options.positions = from["positions"] == "learned" ? Positions::kLearned
                      : from["positions"] == "rope"  ? Positions::kRope
                                                     : Positions::kSinusoidal;
  options.max_positions = from.value("max_positions", 1024);
  options.position_layout = from["position_layout"] == "interleaved" ? PositionLayout::kInterleaved : PositionLayout::kConcatenated;
  const std::map<std::string, Activation> activations = {
      {"relu", Activation::kRelu}, {"gelu", Activation::kGelu}, {"swish", Activation::kSwish}, {"swiglu", Activation::kSwiglu}};
  options.activation = activations.at(from["activation"]);
  options.norm_epsilon = from.value("norm_epsilon", 0.0);
  options.position_start = from.value("position_start", 0);
  if (from.contains("position_spacing")) options.position_spacing = PositionSpacing::kTensor2Tensor;
  if (from.contains("decoder_start")) options.decoder_start = DecoderStart::kZero;
  options.output_bias = from.value("output_bias", false);
  options.tie_embeddings = from["tie_embeddings"] == "all"       ? TieEmbeddings::kAll
                           : from["tie_embeddings"] == "decoder" ? TieEmbeddings::kDecoder
                                                                 : TieEmbeddings::kNone;
  if (from.contains("attention")) options.attention = parse_yaml(from["attention"].get<std::string>(), "golden");
  return options;
}

Tensor tensor_of(const json& values, const json& shape) {
  return at::tensor(values.get<std::vector<double>>(), at::kDouble).view(shape.get<std::vector<int64_t>>());
}

class GoldenTransformer : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    golden_ = golden_of(GetParam());
    const int64_t vocabulary = golden_["vocab_size"];
    model_ = std::make_shared<Transformer>(options_of(golden_["options"]), VocabularySizes{vocabulary, vocabulary, true}, 1);
    model_->to(at::kDouble);
    const at::NoGradGuard guard;
    auto parameters = model_->named_parameters();
    for (const auto& [name, values] : golden_["parameters"].items())
      if (Tensor* parameter = parameters.find(name)) parameter->copy_(tensor_of(values["values"], values["shape"]));
  }
  LossSums loss() {
    return model_->loss(ragged_of(golden_["src"].get<Sentences>()), ragged_of(golden_["tgt"].get<Sentences>()), golden_["label_smoothing"],
                        {.training = true, .step = golden_.value("step", 0)});
  }
  json golden_;
  std::shared_ptr<Transformer> model_;
};
INSTANTIATE_TEST_SUITE_P(, GoldenTransformer,
                         testing::Values("post_norm", "pre_norm", "pre_rms_learned", "post_concatenated_untied", "post_rela", "marian",
                                         "m2m100", "rope_swiglu", "rope_of_halves", "calibrated_gate", "calibrated_mixed"),
                         [](const auto& test) { return test.param; });

// Two ways to add up some hundred products of double: 1e-8 leaves six digits.
constexpr double kLibrariesTolerance = 1e-8;

TEST_P(GoldenTransformer, HasTheSameParameters) {
  std::vector<std::string> mine, theirs;
  for (const auto& item : model_->named_parameters()) mine.push_back(item.key());
  for (const auto& item : golden_["parameters"].items()) theirs.push_back(item.key());
  std::sort(mine.begin(), mine.end());
  EXPECT_EQ(mine, theirs);
}

TEST_P(GoldenTransformer, HasTheSameLoss) {
  const LossSums sums = loss();
  EXPECT_NEAR(sums.loss.item<double>(), golden_["loss"].get<double>(), kLibrariesTolerance);
  EXPECT_NEAR(sums.nll.item<double>(), golden_["nll"].get<double>(), kLibrariesTolerance);
  EXPECT_EQ(sums.correct.item<int64_t>(), golden_["correct"].get<int64_t>());
  EXPECT_EQ(sums.tokens, 10);
  EXPECT_EQ(sums.has_auxiliary(), golden_.contains("masks"));
  if (!sums.has_auxiliary()) return;
  std::map<std::string, double> values;
  for (const auto& [name, sum] : sums.auxiliary.values) values[name] = sum.item<double>();
  EXPECT_NEAR(sums.auxiliary.objective.item<double>(), golden_["masks"]["objective"].get<double>(), kLibrariesTolerance);
  EXPECT_NEAR(values["mask_perturbed_loss"], golden_["masks"]["loss"].get<double>(), kLibrariesTolerance);
  EXPECT_NEAR(values["mask"] / static_cast<double>(sums.tokens), golden_["masks"]["mean"].get<double>(), kLibrariesTolerance);
}

TEST_P(GoldenTransformer, HasTheSameGradients) {
  loss().backward();
  for (const auto& [name, gradient] : take_gradients(*model_)) {
    const json& expected = golden_["parameters"][name];
    EXPECT_LT(difference(gradient, tensor_of(expected["gradient"], expected["shape"])), kLibrariesTolerance) << name;
  }
}

}  // namespace
}  // namespace lacuna
