#include <numeric>

#include "base/ragged.h"
#include "emulated_kernels.h"
#include "search/ensemble.h"
#include "toy_model.h"

namespace lacuna {
namespace {

constexpr int64_t kTransformerVocabulary = 31;

std::shared_ptr<Transformer> small_transformer(uint64_t seed = 1) {
  ModelOptions options;
  options.d_model = 32;
  options.num_heads = 4;
  options.d_ff = 48;
  options.encoder_layers = options.decoder_layers = 2;
  auto model = std::make_shared<Transformer>(options, VocabularySizes{kTransformerVocabulary, kTransformerVocabulary, true}, seed);
  model->eval();
  return model;
}

std::vector<Tokens> sources_of_many_lengths(int count) {
  RandomStream random(3);
  std::vector<Tokens> sources;
  for (int i = 0; i < count; ++i) {
    Tokens src;
    for (uint64_t n = 1 + random.next_below(20); n > 0; --n)
      src.push_back(static_cast<TokenId>(3 + random.next_below(kTransformerVocabulary - 3)));
    src.push_back(kEos);
    sources.push_back(src);
  }
  return sources;
}

/// Reference for the cache: decodes all tokens from the first one at every step.
class WithoutCache : public StepModel {
 public:
  explicit WithoutCache(std::shared_ptr<Transformer> model) : model_(std::move(model)) {}
  std::unique_ptr<DecoderCache> start(const std::vector<Tokens>& sources) override { return std::make_unique<ToyCache>(sources); }
  Logits step(const Tokens& tokens, DecoderCache& cache) override {
    const ToyTable table = [this](const Tokens& src, const Tokens& so_far) {
      std::vector<float> log_probs;
      for (TokenId next = 0; next < kTransformerVocabulary; ++next) {
        Tokens tgt = so_far;
        tgt.push_back(next);
        log_probs.push_back(model_->token_log_probs(ragged_of({src}), ragged_of({tgt}))[-1].item<float>());
      }
      return log_probs;
    };
    return Logits(at::tensor(dynamic_cast<ToyCache&>(cache).step(tokens, table)).view({-1, kTransformerVocabulary}));
  }
  int64_t vocab_size() const override { return kTransformerVocabulary; }
  int64_t max_positions() const override { return 0; }

 private:
  std::shared_ptr<Transformer> model_;
};

TEST(TransformerSearch, TheBatchLeavesNoTrace) {
  const at::NoGradGuard no_gradients;
  TransformerStepModel model(small_transformer());
  TranslateOptions options = beam_of(4, 2);
  options.max_length = 24;
  SearchSettings settings = settings_with(options);
  settings.alignment_layer = 1;
  expect_no_trace_of_the_batch(model, inputs_of(sources_of_many_lengths(64)), settings);
}

TEST(TransformerSearch, TheBatchLeavesNoTraceInAnyFormat) {
  const at::NoGradGuard no_gradients;
  TranslateOptions options = beam_of(4);
  options.max_length = 16;
  for (const Precision format : {Precision::kBf16, Precision::kInt8}) {
    SCOPED_TRACE(name_of(format));
    const auto transformer = small_transformer();
    transformer->set_precision(format);
    TransformerStepModel model(transformer);
    expect_no_trace_of_the_batch(model, inputs_of(sources_of_many_lengths(20)), settings_with(options));
  }
}

TEST(TransformerSearch, CachedEqualsFullRecomputation) {
  const at::NoGradGuard no_gradients;
  const auto transformer = small_transformer();
  TransformerStepModel cached(transformer);
  WithoutCache uncached(transformer);
  const auto inputs = inputs_of(sources_of_many_lengths(3));
  TranslateOptions options = beam_of(3);
  options.max_length = 8;
  const SearchResults expected = search(uncached, inputs, settings_with(options));
  const SearchResults found = search(cached, inputs, settings_with(options));
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(found[i][0].tokens, expected[i][0].tokens);
    EXPECT_NEAR(found[i][0].log_prob, expected[i][0].log_prob, 1e-4);
  }
}

TEST(TransformerSearch, LogProbsAreThoseOfScoring) {
  const at::NoGradGuard no_gradients;
  const auto transformer = small_transformer();
  TransformerStepModel model(transformer);
  const auto inputs = inputs_of(sources_of_many_lengths(5));
  const Hypothesis found = search(model, inputs, settings_with(beam_of(3)))[4][0];
  const Tensor scored = transformer->token_log_probs(ragged_of({inputs[4].src}), ragged_of({found.tokens}));
  for (int64_t t = 0; t < found.length(); ++t) EXPECT_NEAR(found.token_log_probs[static_cast<size_t>(t)], scored[t].item<float>(), 1e-4);
}

TEST(TransformerSearch, AlignmentRowsSumToOne) {
  const at::NoGradGuard no_gradients;
  TransformerStepModel model(small_transformer());
  SearchSettings settings = settings_with(beam_of(2));
  settings.alignment_layer = 1;
  const auto inputs = inputs_of(sources_of_many_lengths(4));
  const SearchResults results = search(model, inputs, settings);
  for (size_t i = 0; i < inputs.size(); ++i)
    for (const AlignmentRow& row : results[i][0].alignment) {
      ASSERT_EQ(row->size(), inputs[i].src.size());
      EXPECT_NEAR(std::accumulate(row->begin(), row->end(), 0.0), 1, 1e-5);
    }
}

TEST(TransformerSearch, FindsTheSameWhereAGpuFindsTheBestTokens) {
  const at::NoGradGuard no_gradients;
  TransformerStepModel model(small_transformer());
  const auto inputs = inputs_of(sources_of_many_lengths(14));  // more rows than are projected together on the CPU
  TranslateOptions options = beam_of(5, 2);
  options.max_length = 8;
  for (const double repetition_penalty : {1.0, 1.3}) {
    options.repetition_penalty = repetition_penalty;
    const SearchResults expected = search(model, inputs, settings_with(options));
    const gpu::Emulation emulated;
    const SearchResults found = search(model, inputs, settings_with(options));
    for (size_t i = 0; i < inputs.size(); ++i) {
      ASSERT_EQ(found[i].size(), expected[i].size());
      for (size_t j = 0; j < found[i].size(); ++j) {
        EXPECT_EQ(found[i][j].tokens, expected[i][j].tokens);
        EXPECT_NEAR(found[i][j].log_prob, expected[i][j].log_prob, 1e-4);
      }
    }
  }
}

TEST(TransformerSearch, TheBatchLeavesNoTraceWhereAGpuFindsTheBestTokens) {
  const at::NoGradGuard no_gradients;
  const gpu::Emulation emulated;
  TransformerStepModel model(small_transformer());
  TranslateOptions options = beam_of(4, 2);
  options.max_length = 8;
  expect_no_trace_of_the_batch(model, inputs_of(sources_of_many_lengths(12)), settings_with(options));
}

TEST(TransformerSearch, EnsembleOfTwoDoesNotDependOnTheBatch) {
  const at::NoGradGuard no_gradients;
  Ensemble ensemble(
      {std::make_shared<TransformerStepModel>(small_transformer(1)), std::make_shared<TransformerStepModel>(small_transformer(2))});
  TranslateOptions options = beam_of(3);
  options.max_length = 16;
  expect_no_trace_of_the_batch(ensemble, inputs_of(sources_of_many_lengths(16)), settings_with(options));
}

}  // namespace
}  // namespace lacuna
