#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <tuple>

#include "base/ragged.h"
#include "config/yaml.h"
#include "emulated_gpu.h"
#include "kernels/device_work.h"
#include "kernels/rounded_copies.h"
#include "toy.h"
#include "train/learning_rate.h"
#include "train/optimizer.h"
#include "train/trainer.h"

// What an update asks of a GPU: launches, synchronizations and allocations, counted where its kernels are emulated on the CPU.
namespace lacuna {
namespace {

struct Layers {
  int64_t encoder = 1, decoder = 1;
  std::string attention = "softmax";
};

/// Makes updates as training with the base model's options does: in bf16, with dropout, with norms before the sub-layers.
class Update {
 public:
  explicit Update(const Layers& layers) {
    ModelOptions options;
    options.d_model = 32;
    options.num_heads = 2;
    options.d_ff = 48;
    options.encoder_layers = layers.encoder;
    options.decoder_layers = layers.decoder;
    options.norm = NormPlace::kPre;
    options.dropout = 0.1;
    options.attention = parse_yaml(layers.attention, "test");
    model_ = std::make_shared<Transformer>(options, VocabularySizes{40, 40, true}, 1);
    train_.precision = Precision::kBf16;
    loss_ = transformer_loss(model_, train_, "cpu");
    optimizer_.emplace(FlatParameters(trained_parameters(*model_)), train_, model_->parameter_ranges());
    take_batch({3, 9, 1}, {3, 9, 1});
  }

  /// Goes on with a batch of sentences of these lengths.
  void take_batch(const std::vector<int32_t>& src_lengths, const std::vector<int32_t>& tgt_lengths) {
    const auto tokens_of = [](const std::vector<int32_t>& lengths) {
      std::vector<TokenId> tokens;
      for (const int32_t length : lengths)
        for (int32_t i = 1; i <= length; ++i) tokens.push_back(i == length ? TokenId{2} : static_cast<TokenId>(3 + i));
      return tokens;
    };
    const auto shape_of = [](const std::vector<int32_t>& lengths) {
      return std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths));
    };
    batch_ = {tokens_of(src_lengths), tokens_of(tgt_lengths), shape_of(src_lengths), shape_of(tgt_lengths)};
  }

  DeviceWork forward_and_backward() {
    const DeviceWorkCounter counter;
    const LossSums sums = loss_(batch_, {.training = true, .seed = 1, .step = ++step_});
    sums.backward();
    sum_ = sums.loss.detach();
    has_auxiliary_ = sums.has_auxiliary();
    return counter.work();
  }
  DeviceWork optimizer() {
    const DeviceWorkCounter counter;
    const QueuedUpdate queued = optimizer_->queue(/*lr=*/1e-3, 1. / 13, has_auxiliary_, sum_);
    DeviceWork work = counter.work();
    EXPECT_TRUE(optimizer_->note(queued.read()).is_finite);
    return work;
  }

 private:
  std::shared_ptr<Transformer> model_;
  TrainOptions train_;
  LossFunction loss_;
  std::optional<Optimizer> optimizer_;
  Batch batch_;
  Tensor sum_;  // of losses
  bool has_auxiliary_ = false;
  int64_t step_ = 0;
};

std::string text_of(const DeviceWork& work) {
  std::string text = "launches " + std::to_string(work.launches) + ", synchronizations " + std::to_string(work.synchronizations) +
                     ", allocations " + std::to_string(work.allocations) + ", bytes " + std::to_string(work.allocated_bytes) +
                     ", copies to the device " + std::to_string(work.copies_there) + ":";
  for (const auto& [name, count] : work.of_operators) text += " " + name + " " + std::to_string(count);
  return text;
}

/// What comes with more layers.
DeviceWork difference(const DeviceWork& more, const DeviceWork& less) {
  DeviceWork rest;
  rest.launches = more.launches - less.launches;
  rest.synchronizations = more.synchronizations - less.synchronizations;
  rest.allocations = more.allocations - less.allocations;
  rest.allocated_bytes = more.allocated_bytes - less.allocated_bytes;
  rest.copies_there = more.copies_there - less.copies_there;
  for (const auto& [name, count] : more.of_operators) {
    const auto found = less.of_operators.find(name);
    if (const int64_t added = count - (found == less.of_operators.end() ? 0 : found->second); added != 0) rest.of_operators[name] = added;
  }
  return rest;
}

DeviceWork work_of(const Layers& layers) {
  Update update(layers);
  update.forward_and_backward();  // what is made once
  update.optimizer();
  return update.forward_and_backward();
}

TEST(GpuWork, OfALayer) {
  const EmulatedGpu gpu(cuda::all_threaded_kernels());
  const DeviceWork both = work_of({1, 1}), encoder = difference(work_of({2, 1}), both), decoder = difference(work_of({1, 2}), both);
  std::cout << "an encoder layer: " << text_of(encoder) << "\na decoder layer: " << text_of(decoder) << "\n";
  EXPECT_LE(encoder.launches, 23);
  EXPECT_LE(decoder.launches, 40);
  EXPECT_EQ(encoder.synchronizations, 0);
  EXPECT_EQ(decoder.synchronizations, 0);
}

/// A decoder layer whose cross-attention is calibrated, in an update without and with the mask pass, which runs the decoder once more.
TEST(GpuWork, OfACalibratedLayer) {
  const EmulatedGpu gpu(cuda::all_threaded_kernels());
  const auto of_layer = [](const std::string& options) {
    const std::string attention = "{cross: {type: calibrated, " + options + "}}";
    return difference(work_of({1, 2, attention}), work_of({1, 1, attention}));
  };
  for (const auto& [combine, launches, with_mask_pass] :
       {std::tuple("gate", 75, 140), std::tuple("anneal", 67, 132), std::tuple("fixed", 69, 134)}) {
    const std::string way = std::string("combine: ") + combine;
    const DeviceWork alone = of_layer(way + ", mask_every: 3"), both = of_layer(way);
    std::cout << combine << ", without the mask pass: " << text_of(alone) << "\nwith it: " << text_of(both) << "\n";
    EXPECT_LE(alone.launches, launches);
    EXPECT_LE(both.launches, with_mask_pass);
    for (const DeviceWork& work : {alone, both}) {
      EXPECT_EQ(work.synchronizations, 0);
      EXPECT_EQ(work.copies_there, 0);
    }
  }
}

TEST(GpuWork, OfAnUpdateBesideItsLayers) {
  const EmulatedGpu gpu(cuda::all_threaded_kernels());
  const DeviceWork both = work_of({1, 1}), layers[] = {difference(work_of({2, 1}), both), difference(work_of({1, 2}), both)};
  const DeviceWork rest = difference(difference(both, layers[0]), layers[1]);
  std::cout << "beside layers: " << text_of(rest) << "\n";
  EXPECT_LE(rest.launches, 39);
  EXPECT_EQ(rest.synchronizations, 0);
}

TEST(GpuWork, OfTheOptimizer) {
  const EmulatedGpu gpu;
  Update update({});
  update.forward_and_backward();
  update.optimizer();
  update.forward_and_backward();
  const DeviceWork work = update.optimizer();
  std::cout << "the optimizer: " << text_of(work) << "\n";
  EXPECT_LE(work.launches, 9);
  EXPECT_EQ(work.synchronizations, 0);
}

/// LibTorch's allocator has what an update asks for, once the one before has given it back.
TEST(GpuWork, AsksForTheSameMemoryAgain) {
  const EmulatedGpu gpu;
  Update update({});
  update.forward_and_backward();
  update.optimizer();
  const DeviceWork before = update.forward_and_backward();
  update.optimizer();
  const DeviceWork after = update.forward_and_backward();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
}

/// Token ids, borders, positions and the attention kernels' schedules go to the device in one block.
TEST(GpuWork, GetsABatchInOneCopy) {
  const EmulatedGpu gpu;
  Update update({2, 2});
  for (const auto& [src, tgt] : {std::pair<std::vector<int32_t>, std::vector<int32_t>>{{3, 9, 1}, {4, 7, 2}}, {{5, 1}, {2, 8}}}) {
    update.take_batch(src, tgt);
    EXPECT_EQ(update.forward_and_backward().copies_there, 1);
    update.optimizer();
  }
}

/// What a run of five updates of two batches each comes to.
struct RunOfUpdates {
  NamedTensors weights;
  TrainingState state;
  std::vector<double> losses;  ///< that were logged
  std::vector<std::string> warnings;
  DeviceWork work;
};

/// `bad_step`: a step with a loss that is none.
RunOfUpdates run_of(int64_t log_every, int64_t bad_step = 0) {
  ModelOptions options;
  options.d_model = 16;
  options.num_heads = 2;
  options.d_ff = 24;
  options.encoder_layers = options.decoder_layers = 1;
  const auto model = std::make_shared<Transformer>(options, VocabularySizes{12, 12, true}, 1);
  TrainOptions train;
  train.precision = Precision::kBf16;
  train.lr = 0.01;
  train.warmup_steps = 2;
  train.max_steps = 5;
  train.update_freq = 2;
  train.log_every = log_every;
  train.valid_every = train.save_every = 100;
  const LossFunction loss_of = transformer_loss(model, train, "cpu");
  const LossFunction loss = [&](const Batch& batch, const ForwardContext& context) {
    LossSums sums = loss_of(batch, context);
    if (context.step == bad_step) sums.loss = sums.loss * NAN;
    return sums;
  };
  Optimizer optimizer(FlatParameters(trained_parameters(*model)), train, model->parameter_ranges());
  ToyStream data({}, {0, 1, 2});
  RunOfUpdates run;
  TrainerHooks hooks;
  hooks.log = [&](const TrainingProgress& progress) { run.losses.push_back(progress.loss_per_token); };
  hooks.save = [](const TrainingState&, const Scores&, bool) {};
  hooks.warn = [&](const std::string& text) { run.warnings.push_back(text); };
  Trainer trainer(train, 1, loss, data, optimizer, LearningRate(train, options.d_model), hooks, {});
  const DeviceWorkCounter counter;
  trainer.run();
  run.work = counter.work();
  for (const auto& [name, tensor] : optimizer.weights()) run.weights[name] = tensor.clone();
  run.state = trainer.state();
  return run;
}

void expect_same_end(const RunOfUpdates& found, const RunOfUpdates& expected) {
  for (const auto& [name, tensor] : expected.weights) EXPECT_TRUE(at::equal(found.weights.at(name), tensor)) << name;
  EXPECT_EQ(found.state.step, expected.state.step);
  EXPECT_EQ(found.state.optimizer_updates, expected.state.optimizer_updates);
  EXPECT_EQ(found.state.skipped_updates, expected.state.skipped_updates);
  EXPECT_EQ(found.state.tgt_tokens, expected.state.tgt_tokens);
  EXPECT_EQ(found.warnings, expected.warnings);
}

/// The outcome of an update is read after the next one was begun, unless someone asks for it: what comes of the run is the same.
TEST(GpuWork, OutcomesAreReadLaterAndAreTheSame) {
  const EmulatedGpu gpu;
  const RunOfUpdates late = run_of(/*log_every=*/100), at_once = run_of(/*log_every=*/1);
  expect_same_end(late, at_once);
  EXPECT_EQ(late.state.optimizer_updates, 5);
  ASSERT_EQ(at_once.losses.size(), 5u);
  ASSERT_EQ(late.losses.size(), 1u);
  EXPECT_EQ(late.work.synchronizations, 0);
}

TEST(GpuWork, AnUpdateThatIsNotFiniteIsLeftOutByTheDevice) {
  const EmulatedGpu gpu;
  const RunOfUpdates late = run_of(/*log_every=*/100, /*bad_step=*/3), at_once = run_of(/*log_every=*/1, /*bad_step=*/3);
  expect_same_end(late, at_once);
  EXPECT_EQ(late.state.optimizer_updates, 4);
  EXPECT_EQ(late.state.skipped_updates, 1);
  ASSERT_EQ(late.warnings.size(), 1u);
  EXPECT_THAT(late.warnings.front(), testing::HasSubstr("of step 3 is not finite"));
  for (const auto& [name, tensor] : late.weights) EXPECT_TRUE(at::isfinite(tensor).all().item<bool>()) << name;
}

/// A run that diverges ends with the update that shows it, though the next one was begun.
TEST(GpuWork, ARunThatDivergesEndsWithTheUpdateThatShowsIt) {
  const EmulatedGpu gpu;
  const ToyModel model;
  TrainOptions train;
  train.max_steps = 5;
  train.max_bad_updates = 1;
  train.log_every = train.valid_every = train.save_every = 100;
  const LossFunction loss = [&](const Batch& batch, const ForwardContext& context) {
    LossSums sums = model.loss(batch, context);
    if (context.step == 2) sums.loss = sums.loss * NAN;
    return sums;
  };
  Optimizer optimizer(FlatParameters(model.parameters()), train);
  ToyStream data;
  TrainerHooks hooks;
  hooks.log = [](const TrainingProgress&) {};
  hooks.save = [](const TrainingState&, const Scores&, bool) {};
  Trainer trainer(train, 1, loss, data, optimizer, LearningRate(train, 4), hooks, {});
  EXPECT_THROW(trainer.run(), DivergedError);
  EXPECT_EQ(trainer.state().step, 2);
  ASSERT_EQ(trainer.last_batches().size(), 1u);
  EXPECT_EQ(trainer.last_batches().front()->src, toy_batch(0, 1)->src);
}

/// Products read the weights that were loaded, not those before, though the first update with them is left out and so writes none.
TEST(GpuWork, LoadedWeightsAreRoundedThoughAnUpdateIsLeftOut) {
  const EmulatedGpu gpu;
  const Tensor weight = at::ones({4, 4}).requires_grad_();
  TrainOptions train;
  train.precision = Precision::kBf16;
  Optimizer optimizer(FlatParameters(NamedParameters{{"weight", weight}}), train);
  optimizer.load_weights({{"weight", at::full({4, 4}, 2.)}}, "a checkpoint");
  weight.mutable_grad() = at::ones({4, 4});
  const QueuedUpdate queued = optimizer.queue(/*lr=*/1e-3, 1, /*with_auxiliary=*/false, at::full({}, NAN, at::kDouble));
  EXPECT_FALSE(optimizer.note(queued.read()).is_finite);
  const Tensor rounded = RoundedCopies::of(weight);
  ASSERT_TRUE(rounded.defined());
  EXPECT_TRUE(at::equal(rounded.to(at::kFloat), weight.detach()));
}

}  // namespace
}  // namespace lacuna
