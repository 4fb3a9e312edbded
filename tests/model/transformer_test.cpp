#include "model/transformer.h"

#include <torch/optim/adam.h>

#include "small_model.h"

namespace lacuna {
namespace {

std::string message_of(const ModelOptions& options, const VocabularySizes& sizes) {
  try {
    Transformer(options, sizes, 1);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Transformer, RefusesHeadsThatDoNotDivideTheModel) {
  ModelOptions options = small_options();
  options.num_heads = 3;
  EXPECT_EQ(message_of(options, {9, 9, true}),
            "model.num_heads is 3; it must divide model.d_model, which is 16. Choose, say, heads of 64 features");
}

TEST(Transformer, RefusesToTieEmbeddingsOfTwoVocabularies) {
  EXPECT_NE(message_of(small_options(), {9, 9, false}).find("model.tie_embeddings is all"), std::string::npos);
}

TEST(Transformer, RefusesSinusoidsOfAnOddModel) {
  ModelOptions options = small_options();
  options.d_model = 15;
  options.num_heads = 1;
  EXPECT_NE(message_of(options, {9, 9, true}).find("model.d_model is 15"), std::string::npos);
}

TEST(Transformer, HasAsManyEmbeddingsAsTheTyingSays) {
  const auto count = [](TieEmbeddings tie) {
    ModelOptions options = small_options();
    options.tie_embeddings = tie;
    int64_t tables = 0;
    for (const auto& item : small_model(options)->named_parameters()) tables += item.value().size(0) == kSmallVocabulary;
    return tables;
  };
  EXPECT_EQ(count(TieEmbeddings::kAll), 1);
  EXPECT_EQ(count(TieEmbeddings::kDecoder), 2);
  EXPECT_EQ(count(TieEmbeddings::kNone), 3);
}

TEST(Transformer, HasWidthsOfItsOwnOnEachSide) {
  ModelOptions options = small_options();
  options.encoder_d_ff = 40;
  options.decoder_d_ff = 8;
  const auto model = small_model(options);
  const auto parameters = model->named_parameters();
  EXPECT_EQ(parameters["encoder.layers.0.feed_forward.inner.weight"].size(0), 40);
  EXPECT_EQ(parameters["decoder.layers.0.feed_forward.inner.weight"].size(0), 8);
}

TEST(Transformer, DropsNothingOutsideOfTraining) {
  ModelOptions options = small_options();
  options.dropout = options.attention_dropout = options.activation_dropout = 0.5;
  const auto with = small_model(options), without = small_model(small_options());
  const auto loss = [](Transformer& model) {
    return model.loss(ragged_of(some_sources()), ragged_of(some_targets()), 0, {}).loss.item<double>();
  };
  EXPECT_EQ(loss(*with), loss(*without));
}

TEST(Transformer, DropsOtherFeaturesInEachStep) {
  ModelOptions options = small_options();
  options.dropout = 0.5;
  const auto model = small_model(options);
  const auto loss = [&](int64_t step) {
    return model->loss(ragged_of(some_sources()), ragged_of(some_targets()), 0, {.training = true, .seed = 1, .step = step})
        .loss.item<double>();
  };
  EXPECT_EQ(loss(1), loss(1));
  EXPECT_NE(loss(1), loss(2));
}

TEST(Transformer, LearnsToCopyInAFewSteps) {
  const auto model = small_model(small_options());
  const Sentences sentences = {{4, 5, 6, 2}, {7, 8, 2}, {9, 10, 11, 12, 2}};
  const auto loss = [&] { return model->loss(ragged_of(sentences), ragged_of(sentences), 0, {.training = true}); };
  const double before = loss().nll.item<double>();
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(5e-3));
  for (int i = 0; i < 60; ++i) {
    optimizer.zero_grad();
    loss().loss.backward();
    optimizer.step();
  }
  EXPECT_LT(loss().nll.item<double>(), 0.1 * before);
}

ModelOptions options_with_learned_alphas() {
  ModelOptions options = small_options();
  options.attention =
      ConfigNode::map({{"type", ConfigNode::scalar("entmax")}, {"alpha", ConfigNode::scalar("learned")}});  // at every site of every layer
  return options;
}

bool is_alpha(const std::string& parameter) {
  return parameter.ends_with(".numbers.alpha_logit");
}

TEST(Transformer, HasAnAlphaForEachHeadWhereTheyAreLearned) {
  std::vector<std::string> names;
  for (const auto& item : small_model(options_with_learned_alphas())->named_parameters()) {
    if (!is_alpha(item.key())) continue;
    names.push_back(item.key());
    EXPECT_EQ(item.value().sizes(), at::IntArrayRef({2}));
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, std::vector<std::string>(
                       {"decoder.layers.0.cross_attention.numbers.alpha_logit", "decoder.layers.0.self_attention.numbers.alpha_logit",
                        "decoder.layers.1.cross_attention.numbers.alpha_logit", "decoder.layers.1.self_attention.numbers.alpha_logit",
                        "encoder.layers.0.self_attention.numbers.alpha_logit", "encoder.layers.1.self_attention.numbers.alpha_logit"}));
}

TEST(Transformer, HasTheGradientForLearnedAlphasOfFiniteDifferences) {
  const auto model = small_model(options_with_learned_alphas());
  model->to(at::kDouble);
  const auto loss = [&] { return model->loss(ragged_of(some_sources()), ragged_of(some_targets()), 0.1, {.training = true}).loss; };
  loss().backward();
  const auto gradients = take_gradients(*model);
  constexpr double kStep = 1e-5;
  for (auto& item : model->named_parameters()) {
    if (!is_alpha(item.key())) continue;
    for (int64_t head = 0; head < 2; ++head) {
      const auto moved = [&](double by) {
        const at::NoGradGuard guard;
        item.value()[head].add_(by);
        return loss().item<double>();
      };
      const double up = moved(kStep), down = moved(-2 * kStep);
      moved(kStep);
      EXPECT_NEAR(gradients.at(item.key())[head].item<double>(), (up - down) / (2 * kStep), 1e-7) << item.key() << ", head " << head;
    }
  }
}

TEST(Transformer, MovesLearnedAlphasAsItLearns) {
  const auto model = small_model(options_with_learned_alphas());
  const Sentences sentences = {{4, 5, 6, 2}, {7, 8, 2}, {9, 10, 11, 12, 2}};
  const auto loss = [&] { return model->loss(ragged_of(sentences), ragged_of(sentences), 0, {.training = true}); };
  std::map<std::string, Tensor> before;
  for (const auto& item : model->named_parameters()) before[item.key()] = item.value().detach().clone();
  const double first = loss().nll.item<double>();
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(5e-3));
  for (int i = 0; i < 60; ++i) {
    optimizer.zero_grad();
    loss().loss.backward();
    optimizer.step();
  }
  EXPECT_LT(loss().nll.item<double>(), 0.1 * first);
  for (const auto& item : model->named_parameters())
    if (is_alpha(item.key())) {
      EXPECT_GT((item.value() - before.at(item.key())).abs().min().item<double>(), 1e-3) << item.key();
    }
}

/// Keeps the learned numbers it sees.
class NumbersProbe : public AttentionProbe {
 public:
  void see(int, AttentionSite, int, int64_t, int64_t, std::span<const float>, std::span<const int32_t>) override {}
  void see_number(int layer, AttentionSite site, const std::string& name, std::span<const double> values) override {
    seen[std::string(name_of(site)) + " " + std::to_string(layer) + " " + name] = {values.begin(), values.end()};
  }
  std::map<std::string, std::vector<double>> seen;
};

TEST(Transformer, ShowsAProbeItsLearnedAlphas) {
  const auto model = small_model(options_with_learned_alphas());
  NumbersProbe probe;
  const at::NoGradGuard guard;
  model->loss(ragged_of(some_sources()), ragged_of(some_targets()), 0, {.probe = &probe});
  EXPECT_EQ(probe.seen.size(), 6u);
  ASSERT_EQ(probe.seen["cross 1 alpha"].size(), 2u);
  EXPECT_NEAR(probe.seen["cross 1 alpha"][1], 1.5, 1e-6);
}

TEST(Transformer, ValidationLossEqualsTrainingLossWithoutDropout) {
  const auto model = small_model(small_options());
  const double with = model->loss(ragged_of(some_sources()), ragged_of(some_targets()), 0.1, {.training = true}).loss.item<double>();
  const at::NoGradGuard guard;
  EXPECT_NEAR(model->loss(ragged_of(some_sources()), ragged_of(some_targets()), 0.1, {}).loss.item<double>(), with, 1e-4);
}

}  // namespace
}  // namespace lacuna
