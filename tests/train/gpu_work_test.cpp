#include <gtest/gtest.h>

#include "base/ragged.h"
#include "emulated_gpu.h"
#include "kernels/device_work.h"
#include "train/optimizer.h"
#include "train/trainer.h"

// What an update asks of a GPU: launches, synchronizations and allocations, counted where its kernels are emulated on the CPU.
namespace lacuna {
namespace {

struct Layers {
  int64_t encoder = 1, decoder = 1;
};

/// Of a batch as training with the base model's options meets it: in bf16, with dropout, its norms before the sub-layers.
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
    model_ = std::make_shared<Transformer>(options, VocabularySizes{40, 40, true}, 1);
    train_.precision = Precision::kBf16;
    loss_ = transformer_loss(model_, train_, "cpu");
    optimizer_.emplace(FlatParameters(trained_parameters(*model_)), train_, model_->parameter_ranges());
    const std::vector<int32_t> lengths = {3, 9, 1};
    for (const int32_t length : lengths)
      for (int32_t i = 1; i <= length; ++i)
        for (auto* side : {&batch_.src, &batch_.tgt}) side->push_back(i == length ? TokenId{2} : static_cast<TokenId>(3 + i));
    batch_.src_shape = batch_.tgt_shape = std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths));
  }

  DeviceWork forward_and_backward() {
    const DeviceWorkCounter counter;
    const LossSums sums = loss_(batch_, {.training = true, .seed = 1, .step = ++step_});
    sums.backward();
    return counter.work();
  }
  DeviceWork optimizer() {
    const DeviceWorkCounter counter;
    optimizer_->update(/*lr=*/1e-3, 1. / 13);
    return counter.work();
  }

 private:
  std::shared_ptr<Transformer> model_;
  TrainOptions train_;
  LossFunction loss_;
  std::optional<Optimizer> optimizer_;
  Batch batch_;
  int64_t step_ = 0;
};

std::string text_of(const DeviceWork& work) {
  std::string text = "launches " + std::to_string(work.launches) + ", synchronizations " + std::to_string(work.synchronizations) +
                     ", allocations " + std::to_string(work.allocations) + ", bytes " + std::to_string(work.allocated_bytes) + ":";
  for (const auto& [name, count] : work.of_operators) text += " " + name + " " + std::to_string(count);
  return text;
}

/// What comes with more layers.
DeviceWork difference(const DeviceWork& more, const DeviceWork& less) {
  DeviceWork rest = {more.launches - less.launches, more.synchronizations - less.synchronizations, more.allocations - less.allocations,
                     more.allocated_bytes - less.allocated_bytes,
                     {}};
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
  const EmulatedGpu gpu;
  const DeviceWork both = work_of({1, 1}), encoder = difference(work_of({2, 1}), both), decoder = difference(work_of({1, 2}), both);
  EXPECT_EQ(encoder.launches, 0) << text_of(encoder);
  EXPECT_EQ(decoder.launches, 0) << text_of(decoder);
  EXPECT_EQ(encoder.synchronizations, 0);
  EXPECT_EQ(decoder.synchronizations, 0);
}

TEST(GpuWork, OfAnUpdateBesideItsLayers) {
  const EmulatedGpu gpu;
  const DeviceWork both = work_of({1, 1}), layers[] = {difference(work_of({2, 1}), both), difference(work_of({1, 2}), both)};
  const DeviceWork rest = difference(difference(both, layers[0]), layers[1]);
  EXPECT_EQ(rest.launches, 0) << text_of(rest);
  EXPECT_EQ(rest.synchronizations, 0);
}

TEST(GpuWork, OfTheOptimizer) {
  const EmulatedGpu gpu;
  Update update({});
  update.forward_and_backward();
  update.optimizer();
  update.forward_and_backward();
  const DeviceWork work = update.optimizer();
  EXPECT_EQ(work.launches, 0) << text_of(work);
  EXPECT_EQ(work.synchronizations, 1);
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

}  // namespace
}  // namespace lacuna
