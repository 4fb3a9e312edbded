#include "speed/bench_trainer.h"

#include "base/log.h"

namespace lacuna {
namespace {

TrainerHooks warnings_only() {
  TrainerHooks hooks;
  hooks.warn = [](const std::string& text) { log_warning("{}", text); };
  return hooks;
}

std::shared_ptr<Transformer> model_on_device(const Options& options, const VocabularySizes& sizes) {
  auto model = std::make_shared<Transformer>(options.model, sizes, options.seed_value());
  model->to(at::Device(options.device));
  return model;
}

}  // namespace

BenchTrainer::BenchTrainer(const Options& options, const VocabularySizes& sizes)
    : model_(model_on_device(options, sizes)),
      optimizer_(FlatParameters(trained_parameters(*model_)), options.train, model_->parameter_ranges()),
      trainer_(options.train, options.seed_value(), transformer_loss(model_, options.train, options.device), batches_, optimizer_,
               LearningRate(options.train, options.model.d_model), warnings_only(), {}) {}

void BenchTrainer::update(const std::vector<BatchPtr>& batches) {
  batches_.give(batches);
  trainer_.update();
}

void BatchTokens::add(const std::vector<BatchPtr>& batches) {
  for (const BatchPtr& batch : batches) {
    sentences += batch->tgt_shape->num_sentences();
    src += batch->src_tokens();
    tgt += batch->tgt_tokens();
  }
}

}  // namespace lacuna
