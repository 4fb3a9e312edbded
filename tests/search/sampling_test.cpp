#include <map>
#include <set>

#include "toy_model.h"

namespace lacuna {
namespace {

constexpr int64_t kSampledVocabulary = 8;

TranslateOptions drawing(Sampling sampling, int64_t draws) {
  TranslateOptions options = beam_of(1, draws);
  options.sampling = sampling;
  options.max_length = 2;
  return options;
}

/// Returns how often each token is the first one of `draws` translations.
std::map<TokenId, int> first_tokens(const std::vector<float>& logits, const TranslateOptions& options) {
  ToyModel model(kSampledVocabulary, constant_table(logits));
  std::map<TokenId, int> counts;
  for (const Hypothesis& drawn : search_one(model, {5, kEos}, settings_with(options))) ++counts[drawn.tokens.front()];
  return counts;
}

/// Returns Pearson's chi-squared statistic of counts against softmax(logits / temperature) over the tokens from 2 on.
double chi_square(const std::map<TokenId, int>& counts, const std::vector<float>& logits, double temperature, int draws) {
  double sum = 0, statistic = 0;
  for (size_t v = kEos; v < logits.size(); ++v) sum += std::exp(logits[v] / temperature);
  for (size_t v = kEos; v < logits.size(); ++v) {
    const double expected = draws * std::exp(logits[v] / temperature) / sum;
    const auto found = counts.find(static_cast<TokenId>(v));
    const double difference = (found == counts.end() ? 0 : found->second) - expected;
    statistic += difference * difference / expected;
  }
  return statistic;
}

const std::vector<float> kLogits = {5, 5, 0, 0.5F, 1, 1.5F, 2, -1};
constexpr double kOneInAThousand = 20.5;  // chi-square with 5 degrees of freedom

TEST(Sampling, DrawsInProportionToProbability) {
  constexpr int kDraws = 4000;
  EXPECT_LT(chi_square(first_tokens(kLogits, drawing(Sampling::kFull, kDraws)), kLogits, 1, kDraws), kOneInAThousand);
}

TEST(Sampling, TemperatureDividesLogits) {
  constexpr int kDraws = 4000;
  TranslateOptions options = drawing(Sampling::kFull, kDraws);
  options.temperature = 2;
  EXPECT_LT(chi_square(first_tokens(kLogits, options), kLogits, 2, kDraws), kOneInAThousand);
}

TEST(Sampling, ALowTemperatureIsGreedy) {
  TranslateOptions options = drawing(Sampling::kFull, 50);
  options.temperature = 1e-4;
  EXPECT_EQ(first_tokens(kLogits, options), (std::map<TokenId, int>{{6, 50}}));
}

TEST(Sampling, TopKDrawsFromTheBestTokensOnly) {
  TranslateOptions options = drawing(Sampling::kTopK, 500);
  options.sample_k = 2;
  const auto counts = first_tokens(kLogits, options);
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_TRUE(counts.contains(6) && counts.contains(5));
}

TEST(Sampling, TopPDrawsFromTheFewestThatHoldTheMass) {
  TranslateOptions options = drawing(Sampling::kTopP, 500);
  options.sample_p = 0.6;  // of the allowed tokens 6 has 0.42, 5 has 0.25
  const auto counts = first_tokens(kLogits, options);
  EXPECT_EQ(counts.size(), 2u);
  EXPECT_TRUE(counts.contains(6) && counts.contains(5));
}

TEST(Sampling, TopPOfOneKeepsEveryToken) {
  TranslateOptions options = drawing(Sampling::kTopP, 3000);
  options.sample_p = 1;
  EXPECT_EQ(first_tokens(kLogits, options).size(), 6u);
}

TEST(Sampling, IsTheSameInAnyBatch) {
  ToyModel model(kSampledVocabulary, random_table(kSampledVocabulary));
  std::vector<Tokens> sources;
  for (TokenId i = 0; i < 20; ++i) sources.push_back({3 + i % 5, 4, kEos});
  TranslateOptions options = drawing(Sampling::kFull, 2);
  options.max_length = 20;
  expect_no_trace_of_the_batch(model, inputs_of(sources), settings_with(options));
}

TEST(Sampling, DependsOnSeedSentenceAndDraw) {
  ToyModel model(kSampledVocabulary, constant_table(std::vector<float>(kSampledVocabulary, 0)));
  TranslateOptions options = drawing(Sampling::kFull, 2);
  options.max_length = options.min_length = 20;
  const auto inputs = inputs_of({{5, kEos}, {5, kEos}});
  SearchSettings settings = settings_with(options);
  std::set<Tokens> drawn;
  for (settings.seed = 1; settings.seed <= 2; ++settings.seed)
    for (const auto& sentence : search(model, inputs, settings))
      for (const Hypothesis& hypothesis : sentence) drawn.insert(hypothesis.tokens);
  EXPECT_EQ(drawn.size(), 8u);
  for (const Tokens& tokens : drawn) EXPECT_EQ(tokens.size(), 20u);
}

TEST(Sampling, BlockedTokensAreNotDrawn) {
  ToyModel model(kSampledVocabulary, constant_table(kLogits));
  const auto settings = settings_with(drawing(Sampling::kFull, 300), {6, 5});
  for (const Hypothesis& drawn : search_one(model, {5, kEos}, settings)) {
    EXPECT_NE(drawn.tokens.front(), 6);
    EXPECT_NE(drawn.tokens.front(), 5);
  }
}

TEST(Sampling, RepeatedTokensCostMore) {
  ToyModel model(kSampledVocabulary, constant_table(kLogits));
  const auto repeats = [&](double penalty) {
    TranslateOptions options = drawing(Sampling::kFull, 400);
    options.max_length = 4;
    options.min_length = 3;
    options.repetition_penalty = penalty;
    int count = 0;
    for (const Hypothesis& drawn : search_one(model, {5, kEos}, settings_with(options)))
      count += std::set<TokenId>(drawn.tokens.begin(), drawn.tokens.end()).size() < drawn.tokens.size();
    return count;
  };
  EXPECT_GT(repeats(1), 100);
  EXPECT_LT(repeats(50), 20);
}

TEST(Sampling, BeginsWithThePrefix) {
  ToyModel model(kSampledVocabulary, random_table(kSampledVocabulary));
  TranslateOptions options = drawing(Sampling::kFull, 5);
  options.max_length = 10;
  std::vector<SearchInput> inputs = inputs_of({{5, kEos}});
  inputs[0].prefix = {7, 3};
  const SearchResults results = search(model, inputs, settings_with(options));
  for (const Hypothesis& drawn : results.front()) EXPECT_EQ(Tokens(drawn.tokens.begin(), drawn.tokens.begin() + 2), inputs[0].prefix);
}

TEST(Sampling, LogProbIsTheModelsWhateverThePenalty) {
  ToyModel model(kSampledVocabulary, constant_table(kLogits));
  TranslateOptions options = drawing(Sampling::kFull, 20);
  options.max_length = options.min_length = 6;
  options.repetition_penalty = 3;
  const at::Tensor log_probs = at::log_softmax(at::tensor(kLogits), 0);
  for (const Hypothesis& drawn : search_one(model, {5, kEos}, settings_with(options))) {
    double expected = 0;
    for (const TokenId token : drawn.tokens) expected += log_probs[token].item<double>();
    EXPECT_NEAR(drawn.log_prob, expected, 1e-4);
  }
}

}  // namespace
}  // namespace lacuna
