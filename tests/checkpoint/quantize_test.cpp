#include "checkpoint/quantize.h"

#include <limits>

#include "base/ragged.h"
#include "checkpoint/average.h"
#include "scratch.h"

namespace lacuna {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A checkpoint of a small model, and its quantized form.
class Quantize : public testing::Test {
 protected:
  Quantize() {
    Options options = small_options();
    options.model.d_model = 64;
    options.model.d_ff = 96;
    options.model.positions = Positions::kLearned;
    options.model.max_positions = 8;
    save_checkpoint(path_, small_checkpoint(1, options));
  }
  void quantize(Precision format) const { save_checkpoint(rounded_, quantized_checkpoint(path_, format)); }

  /// Returns a model's log-probabilities of a sentence pair, with weights rounded to `format`.
  static Tensor log_probs(const std::string& path, Precision format) {
    const std::vector<std::vector<int32_t>> src = {{3, 4, 5, 4, 2}}, tgt = {{5, 3, 2}};
    const at::NoGradGuard no_gradients;
    const LoadedModel loaded = load_model(path);
    loaded.model->round_to(format);
    return loaded.model->token_log_probs(ragged_of(src), ragged_of(tgt));
  }

  ScratchFolder folder_;
  const std::string path_ = folder_ / "step_1", rounded_ = folder_ / "rounded";
};

TEST_F(Quantize, GivesTheBitsOfRoundingAtLoad) {
  for (const Precision format : {Precision::kInt8, Precision::kBf16}) {
    quantize(format);
    const Tensor expected = log_probs(path_, format);
    EXPECT_TRUE(at::equal(log_probs(rounded_, format), expected)) << name_of(format);
    EXPECT_FALSE(at::equal(log_probs(path_, Precision::kFp32), expected)) << name_of(format);
  }
}

TEST_F(Quantize, HoldsBytesAndAScaleForEachRow) {
  quantize(Precision::kInt8);
  const NamedTensors tensors = read_safetensors(FileReader(rounded_ + "/model.safetensors"));
  for (const std::string name :
       {"embedding.weight", "encoder.layers.0.self_attention.qkv.weight", "decoder.layers.0.feed_forward.outer.weight"}) {
    EXPECT_EQ(tensors.at(name).scalar_type(), at::kChar) << name;
    EXPECT_EQ(tensors.at(name + "_scale").scalar_type(), at::kFloat) << name;
    EXPECT_EQ(tensors.at(name + "_scale").numel(), tensors.at(name).size(0)) << name;
  }
  for (const std::string name : {"encoder.layers.0.self_attention.qkv.bias", "encoder.norm.gain", "src_positions.weight"})
    EXPECT_EQ(tensors.at(name).scalar_type(), at::kFloat) << name;
}

TEST_F(Quantize, IsAQuarterOrHalfOfTheSize) {
  const auto share = [&] { return static_cast<double>(bytes_of_weights(rounded_)) / static_cast<double>(bytes_of_weights(path_)); };
  quantize(Precision::kInt8);
  EXPECT_LT(share(), 0.33);  // 0.26 for a model of a useful size: scales, biases and norms count for less
  quantize(Precision::kBf16);
  EXPECT_LT(share(), 0.55);
}

TEST_F(Quantize, TranslatesInItsPrecision) {
  quantize(Precision::kInt8);
  EXPECT_EQ(load_model(rounded_).options.translate.precision, Precision::kInt8);
  EXPECT_EQ(read_checkpoint_info(rounded_).quantized_to, "int8");
  EXPECT_EQ(read_checkpoint_info(path_).quantized_to, "");
  quantize(Precision::kBf16);
  EXPECT_EQ(load_model(rounded_).options.translate.precision, Precision::kBf16);
}

TEST_F(Quantize, IsReadByTheKeyOfVersion01Too) {
  quantize(Precision::kInt8);
  std::string json = bytes_of(rounded_ + "/checkpoint.json");
  const size_t key = json.find("\"quantized_to\": \"int8\"");
  ASSERT_NE(key, std::string::npos);
  replace_listed(rounded_, "checkpoint.json", json.replace(key, 14, "\"quantised_to\""));
  EXPECT_EQ(read_checkpoint_info(rounded_).quantized_to, "int8");
}

TEST_F(Quantize, TakesTheMovingAverageWhereItTranslates) {
  CheckpointContents contents = load_checkpoint(path_);
  contents.ema_weights = contents.weights;
  contents.ema_weights->at("embedding.weight") = at::ones_like(contents.weights.at("embedding.weight"));
  contents.info.uses_ema = true;
  save_checkpoint(path_, contents);
  quantize(Precision::kBf16);
  const CheckpointContents rounded = load_checkpoint(rounded_);
  EXPECT_FALSE(rounded.info.uses_ema || rounded.ema_weights);
  EXPECT_TRUE(at::equal(rounded.weights.at("embedding.weight").to(at::kFloat), contents.ema_weights->at("embedding.weight")));
}

TEST_F(Quantize, RefusesToAverageOrToRoundAgain) {
  quantize(Precision::kInt8);
  EXPECT_THAT(checkpoint_error_of([&] {
                average_checkpoints({path_, rounded_});
              }),
              AllOf(HasSubstr("cannot average " + rounded_), HasSubstr("rounded to int8"), HasSubstr("Use the checkpoint it was made of")));
  EXPECT_THAT(checkpoint_error_of([&] { quantized_checkpoint(rounded_, Precision::kBf16); }), HasSubstr("cannot round " + rounded_));
}

TEST_F(Quantize, NamesAWeightThatHoldsNoNumber) {
  CheckpointContents contents = load_checkpoint(path_);
  contents.weights.at("encoder.norm.gain")[0] = std::numeric_limits<float>::quiet_NaN();
  save_checkpoint(path_, contents);
  EXPECT_THAT(checkpoint_error_of([&] { quantized_checkpoint(path_, Precision::kInt8); }),
              AllOf(HasSubstr(path_), HasSubstr("encoder.norm.gain")));
}

/// What FloatsOfFile gives of tensors that come in this order.
NamedTensors floats_of(const std::vector<NamedTensor>& tensors, const std::string& file = "a/file") {
  FloatsOfFile floats({tensors.begin(), tensors.end()}, file);
  NamedTensors found;
  for (const NamedTensor& tensor : tensors)
    if (auto whole = floats.add(tensor)) found.insert(*whole);
  floats.end();
  EXPECT_EQ(found.size(), floats.shapes().size());
  return found;
}

TEST(FloatsOfFile, NamesTheFileAndBytesWithoutScales) {
  const Tensor bytes = at::ones({2, 3}, at::kChar);
  const auto error = [&](const std::vector<NamedTensor>& tensors) { return checkpoint_error_of([&] { floats_of(tensors); }); };
  EXPECT_THAT(error({{"x.weight", bytes}}), AllOf(HasSubstr("a/file: tensor \"x.weight\""), HasSubstr("no \"x.weight_scale\"")));
  EXPECT_THAT(error({{"x.weight", bytes}, {"x.weight_scale", at::ones({3})}}), HasSubstr("one F32 for each row"));
  EXPECT_THAT(error({{"x.weight", bytes}, {"x.weight_scale", at::ones({2}, at::kDouble)}}), HasSubstr("one F32 for each row"));
  EXPECT_THAT(error({{"x.weight", bytes}, {"x.weight_scale", -at::ones({2})}}), HasSubstr("no scale"));
  EXPECT_THAT(error({{"x.weight", bytes.view({6})}, {"x.weight_scale", at::ones({6})}}), HasSubstr("two dimensions"));
}

TEST(FloatsOfFile, LeavesOtherTensorsAlone) {
  const NamedTensor a = {"a", at::ones({2})}, a_scale = {"a_scale", at::ones({1})}, b = {"b", at::full({1, 2}, 3, at::kChar)},
                    b_scale = {"b_scale", at::full({1}, .5f)};
  const std::vector<std::vector<NamedTensor>> orders = {{a, a_scale, b, b_scale}, {b_scale, a_scale, b, a}};
  for (const auto& tensors : orders) {
    const NamedTensors found = floats_of(tensors);
    EXPECT_EQ(found.size(), 3u);
    EXPECT_TRUE(at::equal(found.at("b"), at::full({1, 2}, 1.5f)));
  }
}

}  // namespace
}  // namespace lacuna
