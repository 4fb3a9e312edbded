#include "bench/length_costs.h"

#include <ATen/core/grad_mode.h>

#include "model/precision.h"
#include "search/search.h"
#include "speed/bench_trainer.h"
#include "speed/timing.h"

namespace lacuna {
namespace {

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
    model_->round_to(translating_precision(options.translate.precision, at::Device(options.device)));
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
