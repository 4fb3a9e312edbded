#include "model/transformer.h"

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

TEST(Transformer, HasABiasOfLogitsWhateverTheTying) {
  for (const TieEmbeddings tie : {TieEmbeddings::kAll, TieEmbeddings::kDecoder, TieEmbeddings::kNone}) {
    ModelOptions options = small_options();
    options.tie_embeddings = tie;
    const size_t without = small_model(options)->parameters().size();
    options.output_bias = true;
    const auto model = small_model(options);
    EXPECT_EQ(model->parameters().size(), without + 1);
    EXPECT_TRUE(model->named_parameters()["output.bias"].equal(at::zeros({kSmallVocabulary})));
  }
}

TEST(Transformer, WithABiasOfZeroStartsAsTheOneWithout) {
  ModelOptions options = small_options();
  const Tensor without = small_model(options)->token_log_probs(ragged_of(some_sources()), ragged_of(some_targets()));
  options.output_bias = true;
  EXPECT_TRUE(small_model(options)->token_log_probs(ragged_of(some_sources()), ragged_of(some_targets())).equal(without));
}

TEST(Transformer, ThatStartsFromZeroDoesNotReadTheEmbeddingOfBos) {
  for (const DecoderStart start : {DecoderStart::kToken, DecoderStart::kZero}) {
    ModelOptions options = small_options();
    options.tie_embeddings = TieEmbeddings::kNone;
    options.decoder_start = start;
    const auto model = small_model(options);
    const auto log_probs = [&] { return model->token_log_probs(ragged_of(some_sources()), ragged_of(some_targets())); };
    const Tensor before = log_probs();
    {
      const at::NoGradGuard guard;
      model->named_parameters()["tgt_embedding.weight"][1].fill_(3);
    }
    EXPECT_EQ(log_probs().equal(before), start == DecoderStart::kZero);
  }
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

LossSums loss_of_copying(Transformer& model) {
  return model.loss(ragged_of(some_to_copy()), ragged_of(some_to_copy()), 0, {.training = true});
}

void expect_to_learn_to_copy(Transformer& model) {
  const double before = loss_of_copying(model).nll.item<double>();
  train(model, [&] { loss_of_copying(model).loss.backward(); });
  EXPECT_LT(loss_of_copying(model).nll.item<double>(), 0.1 * before);
}

TEST(Transformer, LearnsToCopyInAFewSteps) {
  expect_to_learn_to_copy(*small_model(small_options()));
}

TEST(Transformer, LearnsToCopyWithRopeAndSwiglu) {
  ModelOptions options = small_options();
  options.positions = Positions::kRope;
  options.activation = Activation::kSwiglu;
  expect_to_learn_to_copy(*small_model(options));
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
  const auto loss = [&] { return model->loss(ragged_of(some_sources()), ragged_of(some_targets()), 0.1, {.training = true}).loss; };
  expect_gradients_of_finite_differences(*model, is_alpha, loss, 1e-7);
}

TEST(Transformer, MovesLearnedAlphasAsItLearns) {
  const auto model = small_model(options_with_learned_alphas());
  std::map<std::string, Tensor> before;
  for (const auto& item : model->named_parameters()) before[item.key()] = item.value().detach().clone();
  expect_to_learn_to_copy(*model);
  for (const auto& item : model->named_parameters())
    if (is_alpha(item.key())) {
      EXPECT_GT((item.value() - before.at(item.key())).abs().min().item<double>(), 1e-3) << item.key();
    }
}

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
