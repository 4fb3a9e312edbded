#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <tuple>

#include "attention/probe.h"
#include "config/yaml.h"
#include "small_model.h"

namespace lacuna {
namespace {

struct DecodingCase {
  const char* name;
  NormPlace norm;
  Positions positions;
  const char* attention = "softmax";
  ModelOptions (*change)(ModelOptions) = nullptr;
};

ModelOptions with_swiglu(ModelOptions options) {
  options.activation = Activation::kSwiglu;
  return options;
}

/// What models of other programs have in another way than ours.
ModelOptions as_marian(ModelOptions options) {
  options.activation = Activation::kSwish;
  options.norm_epsilon = 1e-3;
  options.position_layout = PositionLayout::kConcatenated;
  options.position_spacing = PositionSpacing::kTensor2Tensor;
  options.position_start = 2;
  options.decoder_start = DecoderStart::kZero;
  options.output_bias = true;
  return options;
}

constexpr const char* kPatterns =
    "{encoder_self: {type: softmax, pattern: {heads: [{type: atrous, stride: 2}, {type: fixed, block: 2}]}}, "
    "decoder_self: {type: softmax, pattern: {heads: [{type: strided, window: 0, stride: 2}, {type: fixed, block: 2}]}}}";

constexpr const char* kCalibrated =
    "{decoder_self: {type: calibrated, pattern: {type: local, window: 2}}, cross: {default: {type: calibrated, combine: fixed}, "
    "layers: {0: {type: calibrated, base: {type: entmax, alpha: learned}}}}}";

constexpr const char* kSpans =
    "{encoder_self: {type: span, max_span: 8, span_init: 0.75, ramp: 2}, "
    "decoder_self: {type: span, span: dynamic, max_span: 8, span_init: 0.75, ramp: 2}}";

class Decoding : public testing::TestWithParam<DecodingCase> {
 protected:
  void SetUp() override {
    ModelOptions options = small_options(GetParam().norm);
    options.positions = GetParam().positions;
    if (GetParam().change != nullptr) options = GetParam().change(options);
    options.attention = parse_yaml("attention: " + std::string(GetParam().attention), "test").entries()[0].second;
    model_ = small_model(options);
    const at::NoGradGuard guard;
    at::manual_seed(2);
    for (auto& item : model_->named_parameters())
      if (item.key().ends_with(".span_weight") || item.key() == "output.bias") item.value().normal_(0, 0.2);  // 0 at first
  }
  std::shared_ptr<Transformer> model_;
};
INSTANTIATE_TEST_SUITE_P(, Decoding,
                         testing::Values(DecodingCase{"PreNorm", NormPlace::kPre, Positions::kSinusoidal},
                                         DecodingCase{"PostNorm", NormPlace::kPost, Positions::kSinusoidal},
                                         DecodingCase{"LearnedPositions", NormPlace::kPre, Positions::kLearned},
                                         DecodingCase{"NoPositions", NormPlace::kPre, Positions::kNone},
                                         DecodingCase{"AsMarian", NormPlace::kPost, Positions::kSinusoidal, "softmax", as_marian},
                                         DecodingCase{"RopeAndSwiglu", NormPlace::kPre, Positions::kRope, "softmax", with_swiglu},
                                         DecodingCase{"RopeCalibrated", NormPlace::kPre, Positions::kRope, kCalibrated},
                                         DecodingCase{"Patterns", NormPlace::kPre, Positions::kSinusoidal, kPatterns},
                                         DecodingCase{"Spans", NormPlace::kPre, Positions::kSinusoidal, kSpans},
                                         DecodingCase{"Calibrated", NormPlace::kPre, Positions::kSinusoidal, kCalibrated}),
                         [](const auto& test) { return std::string(test.param.name); });

/// log-probabilities of the forced targets, token by token through the cache, each ended sentence leaving it.
std::vector<std::vector<float>> step_by_step(Transformer& model, const Sentences& sources, const Sentences& targets) {
  const auto cache = model.start(ragged_of(sources));
  std::vector<std::vector<float>> log_probs(sources.size());
  std::vector<int32_t> last(sources.size(), kSmallBos);
  for (size_t t = 0; cache->num_hypotheses() > 0; ++t) {
    const Logits logits = model.step(last, *cache);
    std::vector<int32_t> chosen, alive;
    for (size_t i = 0; i < last.size(); ++i) chosen.push_back(targets[static_cast<size_t>(cache->sentences()[i])][t]);
    const std::vector<float> given = logits.of(chosen);
    for (size_t i = 0; i < last.size(); ++i) {
      const auto sentence = static_cast<size_t>(cache->sentences()[i]);
      log_probs[sentence].push_back(given[i]);
      if (t + 1 < targets[sentence].size()) alive.push_back(static_cast<int32_t>(i));
    }
    last.clear();
    for (const int32_t i : alive) last.push_back(chosen[static_cast<size_t>(i)]);
    cache->select(alive);
  }
  return log_probs;
}

TEST_P(Decoding, StepByStepEqualsTeacherForcing) {
  const Tensor whole = model_->token_log_probs(ragged_of(some_sources()), ragged_of(some_targets()));
  size_t row = 0;
  for (const auto& sentence : step_by_step(*model_, some_sources(), some_targets()))
    for (const float log_prob : sentence) EXPECT_NEAR(log_prob, whole[static_cast<int64_t>(row++)].item<float>(), 1e-5);
}

TEST_P(Decoding, StepByStepEqualsTeacherForcingInDouble) {
  model_->to(at::kDouble);
  const Tensor whole = model_->token_log_probs(ragged_of(some_sources()), ragged_of(some_targets()));
  size_t row = 0;
  for (const auto& sentence : step_by_step(*model_, some_sources(), some_targets()))
    for (const float log_prob : sentence) EXPECT_NEAR(log_prob, whole[static_cast<int64_t>(row++)].item<float>(), 1e-6);
}

TEST_P(Decoding, OfASentenceHasTheSameBitsInAnyBatch) {
  const auto together = step_by_step(*model_, some_sources(), some_targets());
  for (size_t b = 0; b < together.size(); ++b) EXPECT_EQ(step_by_step(*model_, {some_sources()[b]}, {some_targets()[b]})[0], together[b]);
}

TEST_P(Decoding, OfReorderedHypothesesEqualsDecodingThemAlone) {
  const auto cache = model_->start(ragged_of({some_sources()[0]}));
  model_->step({kSmallBos}, *cache);
  cache->select({0, 0, 0});
  model_->step({4, 5, 6}, *cache);
  cache->select({2, 0});  // the second ends, the others change places
  const Tensor reordered = model_->step({7, 8}, *cache).log_probs();
  const Sentences hypotheses = {{6, 7}, {4, 8}};
  for (int64_t i = 0; i < 2; ++i) {
    const auto alone = model_->start(ragged_of({some_sources()[0]}));
    model_->step({kSmallBos}, *alone);
    model_->step({hypotheses[static_cast<size_t>(i)][0]}, *alone);
    EXPECT_TRUE(model_->step({hypotheses[static_cast<size_t>(i)][1]}, *alone).log_probs()[0].equal(reordered[i]));
  }
}

TEST_P(Decoding, OfASentenceHasTheSameBitsInARunningBatchThatOthersLeaveAndJoin) {
  const Sentences first = {some_sources()[0], some_sources()[1], {9, 9, 4, 13, 2}}, second = {some_sources()[2], {15, 2}};
  const auto cache = model_->start(ragged_of(first)), joining = model_->start(ragged_of(second));
  model_->step({kSmallBos, kSmallBos, kSmallBos}, *cache);
  cache->select({0, 2});  // that in the middle ends
  cache->join(*joining);
  const Tensor together = model_->step({4, 5, kSmallBos, kSmallBos}, *cache).log_probs();
  const auto expect_alone = [&](int64_t row, const std::vector<int32_t>& source, const std::vector<int32_t>& tokens) {
    const auto alone = model_->start(ragged_of(Sentences{source}));
    Tensor expected;
    for (const int32_t token : tokens) expected = model_->step({token}, *alone).log_probs();
    EXPECT_TRUE(together[row].equal(expected[0])) << "row " << row;
  };
  expect_alone(0, first[0], {kSmallBos, 4});
  expect_alone(1, first[2], {kSmallBos, 5});
  expect_alone(2, second[0], {kSmallBos});
  expect_alone(3, second[1], {kSmallBos});
}

/// The means over heads of cross-attention weights that it sees: by layer, sentence and query, [source length].
class CrossProbe : public AttentionProbe {
 public:
  explicit CrossProbe(int num_heads) : num_heads_(num_heads) {}
  bool wants(int, AttentionSite site) const override { return site == AttentionSite::kCross; }
  void see(int layer, AttentionSite, int, int64_t sentence, int64_t query, std::span<const float> weights,
           std::span<const int32_t> key_positions) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::map<int32_t, float>& mean = means[{layer, sentence, query}];
    for (size_t j = 0; j < weights.size(); ++j) mean[key_positions[j]] += weights[j] / static_cast<float>(num_heads_);
  }
  std::map<std::tuple<int, int64_t, int64_t>, std::map<int32_t, float>> means;

 private:
  int num_heads_;
  std::mutex mutex_;
};

TEST_P(Decoding, GivesTheMeanOverHeadsOfTheLayersWeightsAsItsAlignment) {
  const Sentences targets = {{6, 4, 2}, {10, 11, 2}, {8, 3, 2}};
  CrossProbe probe(2);
  {
    const at::NoGradGuard guard;
    model_->loss(ragged_of(some_sources()), ragged_of(targets), 0, {.probe = &probe});
  }
  for (const int layer : {0, 1}) {
    const auto cache = model_->start(ragged_of(some_sources()));
    cache->set_alignment({.layer = layer});
    std::vector<int32_t> last(3, kSmallBos);
    for (int64_t query = 0; query < 3; ++query) {
      model_->step(last, *cache);
      for (size_t b = 0; b < 3; ++b) {
        const std::vector<float>& found = cache->alignment().at(b);
        ASSERT_EQ(found.size(), some_sources()[b].size());
        const std::map<int32_t, float>& expected = probe.means.at(std::tuple(layer, static_cast<int64_t>(b), query));
        for (size_t j = 0; j < found.size(); ++j)
          EXPECT_NEAR(found[j], expected.at(static_cast<int32_t>(j)), 1e-5)
              << "layer " << layer << ", sentence " << b << ", query " << query << ", key " << j;
        last[b] = targets[b][static_cast<size_t>(query)];
      }
    }
  }
}

TEST_P(Decoding, OfAllTokensAsCandidatesEqualsDecodingWithoutAny) {
  std::vector<int32_t> all(kSmallVocabulary);
  std::iota(all.begin(), all.end(), 0);
  const auto plain = model_->start(ragged_of(some_sources())), listed = model_->start(ragged_of(some_sources()));
  listed->set_candidates({all, {2, 5, 9}, all});
  const Tensor expected = model_->step({kSmallBos, kSmallBos, kSmallBos}, *plain).log_probs();
  const Tensor found = model_->step({kSmallBos, kSmallBos, kSmallBos}, *listed).log_probs();
  EXPECT_TRUE(found[0].equal(expected[0]));
  EXPECT_TRUE(found[2].equal(expected[2]));
  const Tensor few = at::tensor({2, 5, 9}, at::kLong), of_few = expected[1].index_select(0, few);
  EXPECT_LT((found[1].index_select(0, few) - (of_few - of_few.logsumexp(0))).abs().max().item<double>(), 1e-5);
}

struct FormatCase {
  Precision format;
  double tolerance;  // of log-probabilities: relative error of a factor, through two layers
  ModelOptions (*change)(ModelOptions) = nullptr;
  const char* name = "";
};

class Formats : public testing::TestWithParam<FormatCase> {
 protected:
  std::shared_ptr<Transformer> model_ = small_model(GetParam().change != nullptr ? GetParam().change(small_options()) : small_options());
};
INSTANTIATE_TEST_SUITE_P(, Formats,
                         testing::Values(FormatCase{Precision::kBf16, 0.05}, FormatCase{Precision::kInt8, 0.1},
                                         FormatCase{Precision::kBf16, 0.05, as_marian, "AsMarian"},
                                         FormatCase{Precision::kInt8, 0.1, as_marian, "AsMarian"},
                                         FormatCase{Precision::kBf16, 0.05, with_swiglu, "WithSwiglu"},
                                         FormatCase{Precision::kInt8, 0.1, with_swiglu, "WithSwiglu"}),
                         [](const auto& test) { return std::string(name_of(test.param.format)) + test.param.name; });

TEST_P(Formats, AreNearFloat) {
  const Ragged src = ragged_of(some_sources()), tgt = ragged_of(some_targets());
  const Tensor in_float = model_->token_log_probs(src, tgt);
  model_->set_precision(GetParam().format);
  const Tensor rounded = model_->token_log_probs(src, tgt);
  EXPECT_LT((rounded - in_float).abs().max().item<double>(), GetParam().tolerance);
  EXPECT_FALSE(rounded.equal(in_float));
}

TEST_P(Formats, StepByStepIsNearTeacherForcing) {
  model_->set_precision(GetParam().format);
  const Tensor whole = model_->token_log_probs(ragged_of(some_sources()), ragged_of(some_targets()));
  int64_t row = 0;
  for (const auto& sentence : step_by_step(*model_, some_sources(), some_targets()))
    for (const float log_prob : sentence) EXPECT_NEAR(log_prob, whole[row++].item<float>(), GetParam().tolerance);
}

TEST_P(Formats, ASentenceHasTheSameBitsInAnyBatch) {
  model_->set_precision(GetParam().format);
  const auto together = step_by_step(*model_, some_sources(), some_targets());
  for (size_t b = 0; b < together.size(); ++b) EXPECT_EQ(step_by_step(*model_, {some_sources()[b]}, {some_targets()[b]})[0], together[b]);
}

TEST_P(Formats, BackToFloatIsAsBefore) {
  const Ragged src = ragged_of(some_sources()), tgt = ragged_of(some_targets());
  const Tensor before = model_->token_log_probs(src, tgt);
  model_->set_precision(GetParam().format);
  model_->token_log_probs(src, tgt);
  model_->set_precision(Precision::kFp32);
  EXPECT_TRUE(model_->token_log_probs(src, tgt).equal(before));
}

TEST(Translating, SeesWeightsThatWereChanged) {
  const auto model = small_model(small_options());
  const auto first = [&] { return model->step({kSmallBos}, *model->start(ragged_of({some_sources()[0]}))).log_probs(); };
  const Tensor before = first();
  {
    const at::NoGradGuard guard;
    for (Tensor& parameter : model->parameters()) parameter.mul_(1.5);
  }
  const Tensor after = first();
  EXPECT_FALSE(before.equal(after));
  const Tensor forced = model->token_log_probs(ragged_of({some_sources()[0]}), ragged_of(Sentences{{9, 2}}));
  EXPECT_NEAR(after[0][9].item<float>(), forced[0].item<float>(), 1e-5);
}

TEST(Translating, SeesWeightsWrittenBehindItsBackOnceATrainingPassWasMade) {
  ModelOptions options = small_options();
  options.tie_embeddings = TieEmbeddings::kNone;
  for (const char* name : {"output.weight", "tgt_embedding.weight", "decoder.layers.1.feed_forward.outer.weight"}) {
    const auto model = small_model(options);
    const auto first = [&] { return model->step({kSmallBos}, *model->start(ragged_of({some_sources()[0]}))).log_probs(); };
    const Tensor before = first();
    model->loss(ragged_of(some_sources()), ragged_of(some_targets()), 0, {.training = true});
    const Tensor weight = model->named_parameters()[name];
    for (int64_t i = 0; i < weight.numel(); i += 5) weight.data_ptr<float>()[i] += 1;  // as a fused optimizer does
    EXPECT_FALSE(before.equal(first())) << name;
  }
}

TEST(Translating, SeesWeightsWrittenBehindItsBackOnceItIsTold) {
  const auto model = small_model(small_options());
  const auto first = [&] { return model->step({kSmallBos}, *model->start(ragged_of({some_sources()[0]}))).log_probs(); };
  const Tensor before = first();
  for (Tensor& parameter : model->parameters()) parameter.data_ptr<float>()[0] += 1;
  model->weights_changed();
  EXPECT_FALSE(before.equal(first()));
}

TEST(Translating, RefusesTokensThatAreNotOneForEachHypothesis) {
  const auto model = small_model(small_options());
  const auto cache = model->start(ragged_of(some_sources()));
  EXPECT_THROW(model->step({kSmallBos}, *cache), ShapeError);
}

class CountingProbe : public AttentionProbe {
 public:
  void see(int layer, AttentionSite site, int head, int64_t sentence, int64_t query, std::span<const float> weights,
           std::span<const int32_t> key_positions) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_EQ(weights.size(), key_positions.size());
    rows_.insert({layer, static_cast<int>(site), head, sentence, query});
  }
  std::set<std::tuple<int, int, int, int64_t, int64_t>> rows_;

 private:
  std::mutex mutex_;
};

TEST(Probe, SeesEveryRowOfEverySite) {
  const auto model = small_model(small_options());
  CountingProbe probe;
  const at::NoGradGuard guard;
  const ForwardContext context = {.probe = &probe};
  model->loss(ragged_of(some_sources()), ragged_of(some_targets()), 0, context);
  EXPECT_EQ(probe.rows_.size(), 2u * 2u * (13u + 9u + 9u));  // layers, heads, source tokens, target tokens twice
}

}  // namespace
}  // namespace lacuna
