#include "attention/registry.h"
#include "base/ragged.h"
#include "checkpoint/quantize.h"
#include "config/yaml.h"
#include "scratch.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

/// A checkpoint of a small model, loaded with another attention than it was trained with.
class LoadModel : public testing::Test {
 protected:
  void save(const std::string& attention) {
    Options options = small_options();
    options.model.encoder_layers = options.model.decoder_layers = 2;
    options.model.attention = parse_yaml(attention, "test").entries()[0].second;
    saved_ = small_checkpoint(1, options);
    save_checkpoint(path_, saved_);
  }
  LoadedModel load(const std::vector<std::string>& overrides) const { return load_model(path_, "cpu", overrides); }

  /// Returns the attention of each layer, by site.
  static std::vector<std::string> types_of(const LoadedModel& loaded) {
    const ModelOptions& model = loaded.options.model;
    const AttentionPlan plan = resolve_attention(model);
    std::vector<std::string> types;
    for (const auto* site : {&plan.encoder_self, &plan.decoder_self, &plan.cross})
      for (const AttentionChoice& choice : *site) types.push_back(choice.type->description().to_line());
    return types;
  }
  /// Returns the model's log-probabilities of a sentence pair.
  static Tensor log_probs(const LoadedModel& loaded) {
    const std::vector<std::vector<int32_t>> src = {{3, 4, 5, 4, 2}}, tgt = {{5, 3, 2}};
    const at::NoGradGuard no_gradients;
    return loaded.model->token_log_probs(ragged_of(src), ragged_of(tgt));
  }

  ScratchFolder folder_;
  const std::string path_ = folder_ / "step_1";
  CheckpointContents saved_;
};

TEST_F(LoadModel, TakesAnotherTypeAndKeepsTheWeights) {
  save("x: {default: topk, cross: {type: topk, k: 1}}");
  const LoadedModel loaded = load({"--model.attention.cross", "entmax15"});
  EXPECT_EQ(types_of(loaded)[0], "{type: topk, k: 8, sparsify: always, pattern: {type: full}}");
  EXPECT_EQ(types_of(loaded)[5], "{type: entmax15, pattern: {type: full}}");
  for (const auto& [name, tensor] : weights_of(*loaded.model)) EXPECT_TRUE(at::equal(tensor, saved_.weights.at(name))) << name;
  EXPECT_FALSE(at::equal(log_probs(loaded), log_probs(load({}))));
}

TEST_F(LoadModel, SparsifyTrainIsSoftmaxWhenTranslating) {
  save("x: {default: {type: topk, k: 1}}");
  const Tensor dense = log_probs(load({"--model.attention", "softmax"}));
  EXPECT_TRUE(at::allclose(log_probs(load({"--model.attention.default.sparsify", "train"})), dense));
  EXPECT_FALSE(at::allclose(log_probs(load({})), dense));
}

TEST_F(LoadModel, OptionsOfASiteChangeWhatItHasByDefaultAndInItsLayers) {
  save("x: {default: {type: topk, k: 3}, decoder_self: topk, cross: {layers: {1: {type: topk, k: 2}}}}");
  const std::vector<std::string> types =
      types_of(load({"--model.attention.cross.sparsify", "train", "--model.attention.decoder_self.k", "5"}));
  EXPECT_THAT(types[0], HasSubstr("k: 3, sparsify: always"));
  EXPECT_THAT(types[2], HasSubstr("k: 5, sparsify: always"));
  EXPECT_THAT(types[4], HasSubstr("k: 3, sparsify: train"));
  EXPECT_THAT(types[5], HasSubstr("k: 2, sparsify: train"));
}

TEST_F(LoadModel, TakesAPatternWhereThereWasNone) {
  save("x: softmax");
  const LoadedModel loaded = load({"--model.attention.encoder_self.pattern", "{type: local, window: 1}"});
  EXPECT_EQ(types_of(loaded)[0], "{type: softmax, pattern: {type: local, window: 1}}");
  EXPECT_EQ(types_of(loaded)[2], "{type: softmax, pattern: {type: full}}");
  EXPECT_FALSE(at::equal(log_probs(loaded), log_probs(load({}))));
}

TEST_F(LoadModel, LeavesOutWhatAnotherTypeAndNormHaveNoUseFor) {
  save("x: {default: rela, cross: {type: entmax, alpha: learned}}");
  EXPECT_EQ(saved_.weights.count("decoder.layers.1.cross_attention.numbers.alpha_logit"), 1u);
  const LoadedModel loaded = load({"--model.attention.encoder_self", "softmax", "--model.attention.cross", "sparsemax"});
  const NamedTensors weights = weights_of(*loaded.model);
  EXPECT_EQ(weights.count("encoder.layers.0.self_attention.norm.gain"), 0u);
  EXPECT_EQ(weights.count("decoder.layers.0.self_attention.norm.gain"), 1u);
  EXPECT_EQ(weights.count("decoder.layers.1.cross_attention.numbers.alpha_logit"), 0u);
}

TEST_F(LoadModel, NamesTheParametersThatAnotherTypeOrNormWouldNeed) {
  save("x: {default: softmax}");
  EXPECT_THAT(checkpoint_error_of([&] {
                load({"--model.attention.encoder_self", "{type: entmax, alpha: learned}"});
              }),
              AllOf(HasSubstr(path_), HasSubstr("encoder.layers.0.self_attention.numbers.alpha_logit, encoder.layers.1"),
                    HasSubstr("Use a type and a norm that it was trained with")));
  EXPECT_THAT(checkpoint_error_of([&] {
                load({"--model.attention.default", "rela"});
              }),
              AllOf(HasSubstr("cross_attention.norm.gain"), HasSubstr("more"), HasSubstr("norm: none")));
  EXPECT_NO_THROW(load({"--model.attention.default", "{type: rela, norm: none}"}));
}

TEST_F(LoadModel, RefusesAnotherUnitOfLearnedNumbers) {
  save("x: {default: softmax, encoder_self: {type: span, max_span: 40}}");
  EXPECT_THAT(checkpoint_error_of([&] {
                load({"--model.attention.encoder_self.max_span", "20"});
              }),
              AllOf(HasSubstr(path_), HasSubstr("encoder_self.0: span of max_span 40 and max_span 20"), HasSubstr("expected the same")));
  EXPECT_NO_THROW(load({"--model.attention.encoder_self.ramp", "9"}));
}

TEST_F(LoadModel, WritingToItsWeightsLeavesTheCheckpointAsItIs) {
  save("x: softmax");
  const Tensor before = log_probs(load({}));
  {
    const LoadedModel changed = load({});
    const at::NoGradGuard no_gradients;
    for (Tensor& parameter : changed.model->parameters()) parameter.mul_(2);
    EXPECT_FALSE(log_probs(changed).equal(before));
  }
  EXPECT_TRUE(log_probs(load({})).equal(before));
}

TEST_F(LoadModel, ToTranslateRoundsAndPacksWhatItReads) {
  save("x: {default: softmax, cross: rela}");
  save_checkpoint(folder_ / "int8", quantized_checkpoint(path_, Precision::kInt8));
  for (const std::string& path : {path_, folder_ / "int8"})
    for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kInt8}) {
      const LoadedModel whole = load_model(path);
      whole.model->round_to(precision);
      const LoadedModel packed = load_model_to_translate(path, "cpu", {}, precision);
      EXPECT_TRUE(log_probs(packed).equal(log_probs(whole))) << path << " " << name_of(precision);
      const NamedTensors weights = weights_of(*packed.model);
      EXPECT_TRUE(weights.at("embedding.weight").equal(weights_of(*whole.model).at("embedding.weight")))
          << path << " " << name_of(precision);
      EXPECT_THROW(weights.at("decoder.layers.1.feed_forward.inner.weight").sum(), c10::Error) << "its memory is given back";
      EXPECT_EQ(packed.hash, whole.hash);
    }
}

TEST_F(LoadModel, ToTranslateTakesThePrecisionOfItsOptions) {
  save("x: softmax");
  const LoadedModel whole = load({});
  whole.model->round_to(Precision::kInt8);
  const LoadedModel packed = load_model_to_translate(path_, "cpu", {"--translate.precision", "int8", "--model.attention", "topk"});
  EXPECT_EQ(types_of(packed)[0], "{type: topk, k: 8, sparsify: always, pattern: {type: full}}");
  EXPECT_TRUE(log_probs(packed).equal(log_probs(load_model_to_translate(path_, "cpu", {"--model.attention", "topk"}, Precision::kInt8))));
  EXPECT_TRUE(log_probs(load_model_to_translate(path_, "cpu", {"--translate.precision", "int8"})).equal(log_probs(whole)));
}

TEST_F(LoadModel, ToTranslateRefusesWeightsThatWereChanged) {
  save("x: softmax");
  std::string bytes = bytes_of(path_ + "/model.safetensors");
  bytes[bytes.size() - 3] ^= 1;
  write_bytes(path_ + "/model.safetensors", bytes);
  const auto error = checkpoint_error_of([&] { load_model_to_translate(path_, "cpu", {}); });
  EXPECT_THAT(error, HasSubstr(path_ + "/model.safetensors"));
  EXPECT_EQ(error, checkpoint_error_of([&] { load({}); }));
}

TEST_F(LoadModel, RefusesChangesOfAnythingElse) {
  save("x: {default: softmax}");
  for (const std::string key : {"model.d_ff", "model.encoder_layers", "model.norm_type", "train.max_steps"}) {
    const std::string value = key == "model.norm_type" ? "rms" : "1";
    EXPECT_THAT(message_of<ConfigError>([&] {
                  load({"--" + key, value});
                }),
                AllOf(HasSubstr(key + " is \"" + value + "\""), HasSubstr("a trained model keeps that")));
  }
}

TEST_F(LoadModel, RefusesAPatternOfDistancesOnCrossAttention) {
  save("x: {default: softmax}");
  EXPECT_THROW(load({"--model.attention.cross.pattern", "local"}), ConfigError);
}

TEST_F(LoadModel, StillRefusesWeightsThatBelongToNothing) {
  save("x: {default: softmax}");
  saved_.weights["surplus"] = at::ones({1});
  save_checkpoint(path_, saved_);
  EXPECT_THAT(checkpoint_error_of([&] { load({"--model.attention.default", "sparsemax"}); }), HasSubstr("not in this model: surplus"));
}

TEST_F(LoadModel, SizesBeyondTheWeightsTakeNoMemory) {
  for (const std::string change : {"d_ff: 1000000000", "d_model: 100000000", "encoder_layers: 1000\n  d_ff: 10000000"}) {
    save("x: softmax");
    std::string config = saved_.config_yaml;
    const std::string key = change.substr(0, change.find(':') + 1);
    const size_t begin = config.find(key), end = config.find('\n', begin);
    config.replace(begin, end - begin, change.substr(0, change.find('\n')));
    if (change.find('\n') != change.npos) config.replace(config.find("d_ff: 16"), 8, "d_ff: 10000000");
    replace_listed(path_, "config.yaml", config);
    EXPECT_THAT(checkpoint_error_of([&] { load({}); }), AllOf(HasSubstr(path_ + "/config.yaml: its model has "),
                                                              HasSubstr(" parameters at least, and the checkpoint's weights are ")))
        << change;
  }
}

TEST_F(LoadModel, ASearchBeyondAllUseMustBeAskedForOnTheCommandLine) {
  TranslateOptions options;
  const auto restricted = [&](const std::vector<std::string>& overrides) { restrict_search(options, "run/best", overrides); };
  EXPECT_NO_THROW(restricted({}));
  options.beam_size = 10000;
  EXPECT_THAT(checkpoint_error_of([&] {
                restricted({"--translate.max_length", "100"});
              }),
              HasSubstr("run/best: its configuration has translate.beam_size 10000; a model itself may ask for 100 at most: give "
                        "--translate.beam_size"));
  EXPECT_NO_THROW(restricted({"--translate.beam_size=10000"}));
  options.max_length = 1'000'000'000;
  EXPECT_THAT(checkpoint_error_of([&] { restricted({"--translate.beam_size", "10000"}); }), HasSubstr("translate.max_length 1000000000"));
}

TEST_F(LoadModel, ItsConfigurationNamesAShortlistOfItsFolderAlone) {
  save("x: softmax");
  const auto read = [&](const std::string& shortlist, const std::vector<std::string>& overrides = {}) {
    TranslateOptions options;
    options.shortlist = shortlist;
    restrict_search(options, path_, overrides);
    return options.shortlist;
  };
  write_bytes(path_ + "/own", "");
  fs::create_symlink("/dev/zero", path_ + "/link");
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read("own"), path_ + "/own");
  EXPECT_EQ(read("/etc/passwd", {"--translate.shortlist", "/etc/passwd"}), "/etc/passwd");
  for (const std::string elsewhere : {"/etc/passwd", "../own", "none", "step_1/own"}) EXPECT_EQ(read(elsewhere), "") << elsewhere;
  EXPECT_THAT(message_of<DataError>([&] { read("link"); }), HasSubstr("/link: is a link"));
}

}  // namespace
}  // namespace lacuna
