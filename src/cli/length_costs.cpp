#include "cli/length_costs.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/random.h"
#include "cli/bench_report.h"
#include "cli/bench_trainer.h"
#include "cli/forced_length.h"
#include "data/batch_maker.h"
#include "model/weight_format.h"
#include "search/search.h"

namespace lacuna {
namespace {

std::vector<TokenId> random_sentence(int64_t length, int64_t vocab_size, RandomStream& random) {
  constexpr TokenId kFirst = kEos + 1;  // of the tokens that sentences hold
  std::vector<TokenId> sentence;
  for (int64_t i = 1; i < length; ++i)
    sentence.push_back(kFirst + static_cast<TokenId>(random.next_below(static_cast<uint64_t>(vocab_size - kFirst))));
  sentence.push_back(kEos);
  return sentence;
}

std::vector<SearchInput> sources_of(const Batch& batch) {
  std::vector<SearchInput> inputs;
  for (int64_t b = 0; b < batch.src_shape->num_sentences(); ++b) {
    const auto begin = batch.src.begin() + batch.src_shape->begin(b);
    inputs.push_back({{begin, begin + batch.src_shape->length(b)}, {}, b});
  }
  return inputs;
}

/// One model that translates the sources of one batch again and again.
class BatchTranslator {
 public:
  BatchTranslator(const Options& options, const VocabularySizes& sizes, const Batch& batch)
      : model_(std::make_shared<Transformer>(options.model, sizes, options.seed_value())),
        step_model_(model_),
        inputs_(sources_of(batch)),
        settings_(settings_of(options, batch.src_shape->max_length())) {
    model_->round_to(weight_format_of(options.translate.precision, at::Device(options.device)));
    model_->eval();
  }

  void translate() {
    const at::NoGradGuard no_gradients;
    search(step_model_, inputs_, settings_);
  }

 private:
  static SearchSettings settings_of(const Options& options, int64_t length) {
    const TranslateOptions translate = with_forced_length(options, length).translate;
    return {translate, Constraints(translate, std::vector<TokenId>())};
  }

  std::shared_ptr<Transformer> model_;
  TransformerStepModel step_model_;
  std::vector<SearchInput> inputs_;
  SearchSettings settings_;
};

MicrosecondsPerToken measured(std::vector<Timed> all, const Batch& batch, int64_t rounds) {
  time_in_turn(all, rounds);
  MicrosecondsPerToken costs;
  for (const Timed& timed : all) costs.push_back(1e3 * timed.median_ms() / static_cast<double>(batch.tgt_tokens()));
  return costs;
}

}  // namespace

BatchPtr random_batch(int64_t length, int64_t tokens, int64_t vocab_size, uint64_t seed) {
  RandomStream random(random_key(seed, RandomUse::kSample, 0, static_cast<uint64_t>(length)));
  BatchBuilder builder;
  for (int64_t id = 0; id < std::max<int64_t>(1, tokens / length); ++id) {
    const std::vector<TokenId> src = random_sentence(length, vocab_size, random);
    builder.add(src, random_sentence(length, vocab_size, random), id);
  }
  return builder.take();
}

MicrosecondsPerToken training_cost(const std::vector<NamedOptions>& all, const VocabularySizes& sizes, const BatchPtr& batch,
                                   int64_t rounds) {
  std::vector<Timed> trainers;
  for (const NamedOptions& one : all) {
    Options options = one.options;
    options.train.update_freq = 1;
    const auto trainer = std::make_shared<BenchTrainer>(options, sizes);
    trainers.push_back({[=] { trainer->update({batch}); }});
  }
  return measured(std::move(trainers), *batch, rounds);
}

MicrosecondsPerToken translating_cost(const std::vector<NamedOptions>& all, const VocabularySizes& sizes, const BatchPtr& batch,
                                      int64_t rounds) {
  std::vector<Timed> translators;
  for (const NamedOptions& one : all) {
    const auto translator = std::make_shared<BatchTranslator>(one.options, sizes, *batch);
    translators.push_back({[=] { translator->translate(); }});
  }
  return measured(std::move(translators), *batch, rounds);
}

}  // namespace lacuna
