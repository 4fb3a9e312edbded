#include <algorithm>

#include "base/random.h"
#include "search/ensemble.h"
#include "toy_model.h"

namespace lacuna {
namespace {

constexpr int64_t kSize = 40;

std::shared_ptr<Transformer> small_model(uint64_t seed = 1) {
  ModelOptions options;
  options.d_model = 32;
  options.num_heads = 4;
  options.d_ff = 48;
  options.encoder_layers = options.decoder_layers = 2;
  auto model = std::make_shared<Transformer>(options, VocabularySizes{kSize, kSize, true}, seed);
  model->eval();
  return model;
}

/// A vocabulary in which the tokens w0 to w36 have the ids 3 to 39.
Vocabularies word_vocabularies() {
  std::string words = "<unk>\n<s>\n</s>\n";
  for (int64_t i = 3; i < kSize; ++i) words.append("w").append(std::to_string(i - 3)).append("\n");
  return {token_list_from_bytes(words, "src"), token_list_from_bytes(words, "tgt")};
}

/// A shortlist in which source token i may become one of the few tokens after i.
std::shared_ptr<const Shortlist> small_shortlist(int per_token) {
  std::vector<Tokens> best(kSize);
  for (TokenId id = 3; id < kSize; ++id)
    for (TokenId j = 0; j < per_token; ++j) best[static_cast<size_t>(id)].push_back(3 + (id + 5 * j) % (kSize - 3));
  return std::make_shared<const Shortlist>(word_vocabularies(), best, Tokens{3, 4});
}

std::vector<Tokens> random_sources(int count) {
  RandomStream random(5);
  std::vector<Tokens> sources;
  for (int i = 0; i < count; ++i) {
    Tokens src;
    for (uint64_t n = 1 + random.next_below(9); n > 0; --n) src.push_back(static_cast<TokenId>(3 + random.next_below(kSize - 3)));
    src.push_back(kEos);
    sources.push_back(src);
  }
  return sources;
}

SearchSettings settings_of_shortlist(const TranslateOptions& options, std::shared_ptr<const Shortlist> shortlist) {
  SearchSettings settings = settings_with(options);
  settings.shortlist = std::move(shortlist);
  return settings;
}

class ShortlistSearch : public testing::Test {
 protected:
  ShortlistSearch() { options_.max_length = 12; }
  const at::NoGradGuard no_gradients_;
  TranslateOptions options_ = beam_of(4, 2);
  const std::vector<SearchInput> inputs_ = inputs_of(random_sources(8));
};

TEST_F(ShortlistSearch, SaysOnlyWhatIsListed) {
  TransformerStepModel model(small_model());
  const SearchSettings settings = settings_of_shortlist(options_, small_shortlist(2));
  const SearchResults results = search(model, inputs_, settings);
  for (size_t i = 0; i < inputs_.size(); ++i)
    for (const Hypothesis& found : results[i])
      for (const TokenId token : found.tokens) {
        const auto listed = settings.shortlist->candidates(inputs_[i].src, {});
        EXPECT_TRUE(std::binary_search(listed.begin(), listed.end(), token)) << "sentence " << i << ", token " << token;
      }
}

TEST_F(ShortlistSearch, DoesNotDependOnTheBatch) {
  for (const Precision format : {Precision::kFp32, Precision::kInt8}) {
    SCOPED_TRACE(name_of(format));
    const auto transformer = small_model();
    transformer->set_precision(format);
    TransformerStepModel model(transformer);
    expect_no_trace_of_the_batch(model, inputs_, settings_of_shortlist(options_, small_shortlist(3)));
  }
}

TEST_F(ShortlistSearch, OfTheWholeVocabularyChangesNothing) {
  TransformerStepModel model(small_model());
  const SearchResults plain = search(model, inputs_, settings_with(options_));
  const SearchResults listed = search(model, inputs_, settings_of_shortlist(options_, small_shortlist(kSize)));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    EXPECT_EQ(listed[i][0].tokens, plain[i][0].tokens);
    EXPECT_NEAR(listed[i][0].score, plain[i][0].score, 1e-5);
  }
}

TEST_F(ShortlistSearch, KeepsAPrefixThatIsNotListed) {
  TransformerStepModel model(small_model());
  std::vector<SearchInput> inputs = {{{5, kEos}, {30, 31}, 0}};
  const SearchResults results = search(model, inputs, settings_of_shortlist(options_, small_shortlist(1)));
  const Hypothesis& found = results[0][0];
  ASSERT_GE(found.tokens.size(), 2u);
  EXPECT_EQ(Tokens(found.tokens.begin(), found.tokens.begin() + 2), (Tokens{30, 31}));
  EXPECT_GT(found.log_prob, kNever);
}

TEST_F(ShortlistSearch, HoldsForSamplingAndEnsembles) {
  Ensemble ensemble({std::make_shared<TransformerStepModel>(small_model(1)), std::make_shared<TransformerStepModel>(small_model(2))});
  for (const Sampling sampling : {Sampling::kNone, Sampling::kFull}) {
    options_.sampling = sampling;
    const SearchSettings settings = settings_of_shortlist(options_, small_shortlist(2));
    expect_no_trace_of_the_batch(ensemble, inputs_, settings);
    const SearchResults together = search(ensemble, inputs_, settings);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const auto listed = settings.shortlist->candidates(inputs_[i].src, {});
      for (const TokenId token : together[i][0].tokens) EXPECT_TRUE(std::binary_search(listed.begin(), listed.end(), token));
    }
  }
}

TEST(ShortlistedLogits, ArePaddedWithWhatIsImpossible) {
  const auto tokens = std::make_shared<const std::vector<int32_t>>(std::vector<int32_t>{2, 5});
  const auto all = std::make_shared<const std::vector<int32_t>>(std::vector<int32_t>{0, 2, 4});
  const Logits logits(at::tensor({0.f, 0.f, 99.f, 0.f, 1.f, 2.f}).view({2, 3}), {tokens, all}, 6);
  EXPECT_EQ(logits.vocab_size(), 6);
  const BestTokens best = logits.best(3);
  EXPECT_EQ(best.tokens[0], 2);
  EXPECT_EQ(best.tokens[1], 5);
  EXPECT_FLOAT_EQ(best.log_probs[1], std::log(.5f));
  EXPECT_EQ(best.log_probs[2], kNever);
  EXPECT_EQ((Tokens(best.tokens.begin() + 3, best.tokens.end())), (Tokens{4, 2, 0}));
  EXPECT_EQ(logits.of({5, 5}), (std::vector<float>{std::log(.5f), kNever}));
  EXPECT_EQ(logits.log_probs()[0][4].item<float>(), kNever);
  EXPECT_FLOAT_EQ(logits.log_probs()[0][5].item<float>(), std::log(.5f));
  const std::vector<int32_t> second = {1};
  EXPECT_TRUE(logits.log_probs(&second).equal(logits.log_probs().narrow(0, 1, 1)));
}

}  // namespace
}  // namespace lacuna
