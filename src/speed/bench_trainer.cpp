#include "speed/bench_trainer.h"

#include <ATen/Parallel.h>

#include "base/device.h"
#include "base/log.h"
#include "data/batch_maker.h"
#include "kernels/barrier_waits.h"
#include "kernels/profile.h"
#include "model/precision.h"

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

TrainingData opened_data(const Options& options, const std::string& folder) {
  refuse_stream(options.data, "lacuna bench");
  return open_training_data(options.data, folder, options.train.batch_tokens.value.value_or(4096), options.seed_value());
}

}  // namespace

BenchTrainer::BenchTrainer(const Options& options, const VocabularySizes& sizes, Group& group)
    : model_(model_on_device(options, sizes)),
      optimizer_(FlatParameters(trained_parameters(*model_)), options.train, model_->parameter_ranges(), group),
      trainer_(options.train, options.seed_value(), transformer_loss(model_, options.train, options.device), batches_, optimizer_,
               LearningRate(options.train, options.model.d_model), warnings_only(), {}) {
  watch_barrier_waits();  // as for training, and after the child process that trains a vocabulary
}

void BenchTrainer::update(const std::vector<BatchPtr>& batches) {
  batches_.give(batches, optimizer_.group());
  trainer_.update();
}

BenchBatches::BenchBatches(const Options& options, const std::string& folder)
    : data_(opened_data(options, folder)), per_update_(options.train.update_freq), stream_(make_batch_stream(data_.plan)) {}

std::vector<BatchPtr> BenchBatches::next() {
  const TimedPart timed(ProfilePart::kDataWait);
  std::vector<BatchPtr> batches;
  batches.reserve(static_cast<size_t>(per_update_));
  for (int64_t i = 0; i < per_update_; ++i) batches.push_back(stream_->next());
  return batches;
}

nlohmann::ordered_json setting_of(const Options& options) {
  return {{"precision", name_of(factor_precision(options.train.precision, options.device))},
          {"device", options.device},
          {"threads", at::get_num_threads()}};
}

void BatchTokens::add(const std::vector<BatchPtr>& batches) {
  for (const BatchPtr& batch : batches) {
    sentences += batch->tgt_shape->num_sentences();
    src += batch->src_tokens();
    tgt += batch->tgt_tokens();
  }
}

}  // namespace lacuna
