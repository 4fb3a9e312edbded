#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "../base/scratch_folder.h"
#include "base/ragged.h"
#include "base/random.h"
#include "checkpoint/checkpoint.h"
#include "config/yaml.h"
#include "emulated_gpu.h"
#include "kernels/dropout.h"
#include "toy.h"
#include "train/adam.h"
#include "train/optimizer.h"
#include "train/trainer.h"

// Models on a GPU against the same models on the CPU: losses, gradients, updates, decoding. Training runs emulated on the CPU, too; the
// rest is left out where there is no GPU.
namespace lacuna {
namespace {

constexpr int64_t kPieces = 60;  // of the vocabulary

/// How far a GPU may be off, relative to the number, or to the norm of a tensor.
struct GpuTolerance {
  double loss, gradient;
};
/// Sums of some hundred products in another order, in float.
constexpr GpuTolerance kInFp32 = {1e-4, 1e-3};
/// Factors of products, and what attention reads and gives, have 8 bits: rounded in other places than on the CPU, and there may be a weight
/// of 0 where the other has one just above.
constexpr GpuTolerance kInBf16 = {1e-2, 1e-1};

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no GPU in this build or machine";
  }
};

/// Runs on a GPU, where there is one, and on the CPU with the GPU's kernels emulated.
class OnGpuOrEmulated : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (!GetParam() && !at::hasCUDA()) GTEST_SKIP() << "no GPU in this build or machine";
  }
  std::string device() const { return GetParam() ? "cpu" : "cuda"; }
  template <class F>
  auto on_gpu(const F& f) const {
    std::optional<EmulatedGpu> emulation;
    if (GetParam()) emulation.emplace();
    return f();
  }
};

std::string name_of_way(const testing::TestParamInfo<bool>& way) {
  return way.param ? "Emulated" : "Gpu";
}
INSTANTIATE_TEST_SUITE_P(, OnGpuOrEmulated, testing::Bool(), name_of_way);

std::vector<std::string> attentions() {
  return {"{type: softmax}", "{type: entmax, alpha: learned}",
          // No key lies where a span's slope has its kinks.
          "{encoder_self: {type: span, span_init: 7.5}, decoder_self: {type: span, span: dynamic, span_init: 7.5}, cross: {type: rela}}",
          "{encoder_self: {type: softmax, norm: layer}, decoder_self: {type: calibrated, base: sparsemax}, cross: {type: calibrated}}",
          "{decoder_self: {type: calibrated, combine: anneal, anneal_steps: 2}, cross: {type: calibrated, combine: fixed}}"};
}

std::shared_ptr<Transformer> model_on(const std::string& device, const std::string& attention) {
  ModelOptions options;
  options.d_model = 48;  // heads of 24 numbers fill no tile of 16
  options.num_heads = 2;
  options.d_ff = 64;
  options.encoder_layers = options.decoder_layers = 2;
  options.dropout = options.attention_dropout = options.activation_dropout = 0.1;
  options.attention = parse_yaml(attention, "test");
  auto model = std::make_shared<Transformer>(options, VocabularySizes{kPieces, kPieces, true}, 1);
  model->to(at::Device(device));
  return model;
}

Batch batch_of(const std::vector<int32_t>& lengths) {
  Batch batch;
  RandomStream random(5);
  for (const int32_t length : lengths)
    for (int32_t i = 1; i <= length; ++i)
      for (auto* side : {&batch.src, &batch.tgt})
        side->push_back(i == length ? TokenId{2} : static_cast<TokenId>(3 + random.next_below(kPieces - 3)));
  batch.src_shape = batch.tgt_shape = std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths));
  return batch;
}

Batch short_and_long_ones() {
  return batch_of({1, 9, 40});
}

/// The losses of two updates, and the gradients of the first.
struct TwoUpdates {
  std::vector<double> losses;
  NamedTensors gradients;
};

TwoUpdates two_updates_on(const std::string& device, const std::string& attention, Precision precision, const Batch& batch) {
  const auto model = model_on(device, attention);
  TrainOptions options;
  options.precision = precision;
  const LossFunction loss_of = transformer_loss(model, options, device);
  Optimizer optimizer(FlatParameters(trained_parameters(*model)), options, model->parameter_ranges());
  TwoUpdates done;
  for (const int64_t step : {1, 2}) {
    const ForwardContext context = {.training = true, .seed = 1, .step = step};
    const LossSums sums = loss_of(batch, context);
    sums.backward();
    done.losses.push_back(sums.loss.item<double>());
    if (sums.has_auxiliary()) done.losses.push_back(sums.auxiliary.objective.item<double>());
    if (step == 1)
      for (const auto& [name, parameter] : model->named_parameters().pairs())
        if (parameter.grad().defined()) done.gradients[name] = parameter.grad().to(at::kCPU, at::kDouble);
    optimizer.update(/*lr=*/1e-3, 1 / static_cast<double>(sums.tokens), sums.has_auxiliary());
  }
  return done;
}

double norm_of(const Tensor& tensor) {
  return tensor.square().sum().sqrt().item<double>();
}

double largest_norm_of(const NamedTensors& tensors) {
  double largest = 0;
  for (const auto& [name, tensor] : tensors) largest = std::max(largest, norm_of(tensor));
  return largest;
}

void expect_alike(const TwoUpdates& found, const TwoUpdates& expected, const GpuTolerance& tolerance) {
  ASSERT_EQ(found.losses.size(), expected.losses.size());
  for (size_t i = 0; i < found.losses.size(); ++i)
    EXPECT_NEAR(found.losses[i], expected.losses[i], tolerance.loss * (1 + std::abs(expected.losses[i]))) << "loss " << i;
  ASSERT_EQ(found.gradients.size(), expected.gradients.size());
  const double some = 0.1 * largest_norm_of(expected.gradients);  // gradients that should be 0 are rounding
  for (const auto& [name, gradient] : expected.gradients)
    EXPECT_LE(norm_of(found.gradients.at(name) - gradient), tolerance.gradient * (norm_of(gradient) + some)) << name;
}

TEST_P(OnGpuOrEmulated, TrainsAsOnTheCpu) {
  const Batch batch = GetParam() ? batch_of({1, 4, 9}) : short_and_long_ones();  // emulation takes its time
  for (const std::string& attention : attentions())
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      const bool in_bf16 = precision == Precision::kBf16;
      SCOPED_TRACE(attention + (in_bf16 ? ", bf16" : ", fp32"));
      const TwoUpdates found = on_gpu([&] { return two_updates_on(device(), attention, precision, batch); });
      expect_alike(found, two_updates_on("cpu", attention, precision, batch), in_bf16 ? kInBf16 : kInFp32);
    }
}

/// Log-probabilities of a few steps.
Tensor decoded_on(const std::string& device, const std::string& attention) {
  const auto model = model_on(device, attention);
  const Batch batch = short_and_long_ones();
  const auto cache = model->start(ragged_of(batch.src, batch.src_shape, model->device()));
  std::vector<int32_t> tokens = {1, 1, 1};
  std::vector<Tensor> steps;
  for (int32_t step = 0; step < 6; ++step) {
    steps.push_back(model->step(tokens, *cache).log_probs());
    tokens = {3 + step, 20 - step, 30 + step};
  }
  return at::cat(steps);
}

TEST_F(OnGpu, DecodesAsOnTheCpu) {
  for (const std::string& attention : attentions()) {
    const Tensor found = decoded_on("cuda", attention), expected = decoded_on("cpu", attention);
    EXPECT_LE((found - expected).abs().max().item<double>(), 1e-3) << attention;
  }
}

TEST_F(OnGpu, WritesWeightsThatTheCpuReads) {
  const ScratchFolder folder;
  const auto model = model_on("cuda", attentions().front()), reader = model_on("cpu", attentions().front());
  const NamedTensors weights = weights_of(*model);
  {
    const at::NoGradGuard no_gradients;
    for (const auto& [name, weight] : weights) Tensor(weight).mul_(2);
  }
  write_safetensors(folder / "model.safetensors", weights);
  load_weights(*reader, read_safetensors(FileReader(folder / "model.safetensors")), "test");
  for (const auto& [name, weight] : weights_of(*reader)) EXPECT_TRUE(at::equal(weight, weights.at(name).cpu())) << name;
}

TEST_P(OnGpuOrEmulated, UpdatesAsTheReference) {
  at::manual_seed(3);
  for (const bool averages : {false, true}) {
    const auto random = [] { return at::randn({40000}); };
    const AdamBuffers here = {random(), random(), random().abs(), averages ? random() : Tensor()};
    const auto copied = [&](const Tensor& buffer) { return buffer.defined() ? buffer.to(at::Device(device())).clone() : buffer; };
    const AdamBuffers there = {copied(here.values), copied(here.first_moment), copied(here.second_moment), copied(here.average)};
    // One without a gradient, and elements of the buffers that are no parameter's.
    PlacedGradients gradients = {{16, 30000, at::randn({300, 100})}, {30016, 64, Tensor()}, {30096, 9904, at::randn({9904})}};
    const double squares = sum_of_squares(gradients);
    adam_update_reference(here, gradients, kSomeAdamStep);
    for (PlacedGradient& placed : gradients) placed.gradient = copied(placed.gradient);
    EXPECT_NEAR(on_gpu([&] { return sum_of_squares(gradients); }), squares, 1e-6 * squares);
    on_gpu([&] { adam_update(there, gradients, kSomeAdamStep); });
    const std::vector<std::pair<Tensor, Tensor>> pairs = {{there.values, here.values},
                                                          {there.first_moment, here.first_moment},
                                                          {there.second_moment, here.second_moment},
                                                          {there.average, here.average}};
    for (const auto& [found, expected] : pairs) {
      if (!expected.defined()) continue;
      EXPECT_TRUE(at::allclose(found.cpu(), expected, 1e-5, 1e-6));
    }
  }
}

TEST_P(OnGpuOrEmulated, DropsWhatTheCpuDrops) {
  const auto shape = std::make_shared<const RaggedShape>(RaggedShape::of_lengths({0, 4, 0, 60, 0}, {3, 8, 2, int64_t{1} << 40, 21}));
  const Dropout dropout = {0.3, 7, shape};
  for (const int64_t columns : {1, 100, 128, 300}) {
    const Tensor found =
        on_gpu([&] { return dropout_factors(dropout, columns, at::TensorOptions(at::kFloat).device(at::Device(device()))); });
    EXPECT_TRUE(at::equal(found.cpu(), dropout_factors(dropout, columns, at::kFloat))) << columns;
  }
}

}  // namespace
}  // namespace lacuna
