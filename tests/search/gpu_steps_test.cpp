#include <iostream>

#include "attention/gpu/run.h"
#include "config/yaml.h"
#include "emulated_kernels.h"
#include "kernels/device_work.h"
#include "model/slot_cache.h"
#include "toy_model.h"

// Translating as on a GPU, where its kernels are emulated on the CPU: beside the CPU's way, and what a step asks of the device.
namespace lacuna {
namespace {

constexpr int64_t kVocabulary = 31;

/// While it lives, decoding on the CPU goes the way of a GPU.
class EmulatedGpu {
 public:
  EmulatedGpu() { cuda::emulate(&engine_); }
  ~EmulatedGpu() { cuda::emulate(nullptr); }
  EmulatedGpu(const EmulatedGpu&) = delete;
  EmulatedGpu& operator=(const EmulatedGpu&) = delete;

 private:
  gpu::Emulation rows_;
  cuda::Engine engine_ = {cuda::all_threaded_kernels(), [] { return 163 * 1024; }};
};

ModelOptions options_with(const std::string& attention) {
  ModelOptions options;
  options.d_model = 32;
  options.num_heads = 4;
  options.d_ff = 48;
  options.encoder_layers = options.decoder_layers = 2;
  options.attention = parse_yaml("attention: " + attention, "test").entries()[0].second;
  return options;
}

std::shared_ptr<Transformer> model_of(const ModelOptions& options) {
  auto model = std::make_shared<Transformer>(options, VocabularySizes{kVocabulary, kVocabulary, true}, 1);
  model->eval();
  return model;
}

std::vector<Tokens> sources_of_many_lengths(int count) {
  RandomStream random(3);
  std::vector<Tokens> sources;
  for (int i = 0; i < count; ++i) {
    Tokens src;
    for (uint64_t n = 1 + random.next_below(20); n > 0; --n) src.push_back(static_cast<TokenId>(3 + random.next_below(kVocabulary - 3)));
    src.push_back(kEos);
    sources.push_back(src);
  }
  return sources;
}

void expect_the_cpus_translations(const ModelOptions& options, const SearchSettings& settings, const std::string& what) {
  SCOPED_TRACE(what + ", beam of " + std::to_string(settings.options.beam_size));
  TransformerStepModel model(model_of(options));
  const auto inputs = inputs_of(sources_of_many_lengths(6));
  const SearchResults expected = search_with_room(/*batch_tokens=*/30, model, inputs, settings);
  const EmulatedGpu gpu;
  const SearchResults found = search_with_room(/*batch_tokens=*/30, model, inputs, settings);
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_EQ(found[i].size(), expected[i].size());
    for (size_t j = 0; j < found[i].size(); ++j) {
      EXPECT_EQ(found[i][j].tokens, expected[i][j].tokens);
      EXPECT_NEAR(found[i][j].log_prob, expected[i][j].log_prob, 1e-4);
      ASSERT_EQ(found[i][j].alignment.size(), expected[i][j].alignment.size());
    }
  }
}

const char* const kAttention[] = {
    "softmax",
    "{type: topk, k: 2}",
    "rela",
    "sparsemax",
    "entmax15",
    "{type: entmax, alpha: 1.3}",
    "{type: entmax, alpha: learned}",
    "{type: rela, norm: gated_rms}",
    "{decoder_self: {type: span, max_span: 8, span_init: 0.75, ramp: 2}}",
    "{decoder_self: {type: span, span: dynamic, max_span: 8, span_init: 0.75, ramp: 2}}",
    "{decoder_self: {type: softmax, pattern: {type: local, window: 3}}}",
    "{decoder_self: {type: softmax, pattern: {heads: [{type: strided, window: 0, stride: 2}, {type: fixed, block: 2}, full, full]}}}",
    "{decoder_self: calibrated}",  // takes lists of slots
    "{cross: calibrated}"};

TEST(GpuSteps, TranslateAsTheCpuDoes) {
  const at::NoGradGuard no_gradients;
  for (const char* attention : kAttention)
    for (const int64_t beam_size : {1, 5}) {
      TranslateOptions options = beam_of(beam_size);
      options.max_length = 8;
      expect_the_cpus_translations(options_with(attention), settings_with(options), attention);
    }
}

TEST(GpuSteps, TranslateAsTheCpuDoesWithAnyLayer) {
  const at::NoGradGuard no_gradients;
  TranslateOptions options = beam_of(3, 2);
  options.max_length = 8;
  const auto with = [](auto change) {
    ModelOptions model = options_with("softmax");
    change(model);
    return model;
  };
  const std::vector<std::pair<std::string, ModelOptions>> cases = {
      {"post-norm", with([](ModelOptions& o) { o.norm = NormPlace::kPost; })},
      {"rope, swiglu", with([](ModelOptions& o) { o.positions = Positions::kRope, o.activation = Activation::kSwiglu; })},
      {"gelu, bias", with([](ModelOptions& o) { o.activation = Activation::kGelu, o.output_bias = true; })},
      {"learned, zero", with([](ModelOptions& o) { o.positions = Positions::kLearned, o.decoder_start = DecoderStart::kZero; })}};
  for (const auto& [name, model] : cases) expect_the_cpus_translations(model, settings_with(options), name);
  SearchSettings aligned = settings_with(options);
  aligned.alignment_layer = 1;
  expect_the_cpus_translations(options_with("softmax"), aligned, "aligned");
}

TEST(GpuSteps, TheBatchLeavesNoTrace) {
  const at::NoGradGuard no_gradients;
  const EmulatedGpu gpu;
  for (const char* attention : {"softmax", "entmax15"}) {
    TransformerStepModel model(model_of(options_with(attention)));
    TranslateOptions options = beam_of(3, 2);
    options.max_length = 8;
    expect_no_trace_of_the_batch(model, inputs_of(sources_of_many_lengths(6)), settings_with(options));
  }
}

/// Log-probabilities of some steps.
std::vector<Tensor> steps_of(const ModelOptions& options, Precision precision) {
  const auto model = model_of(options);
  model->set_precision(precision);
  const auto cache = model->start(ragged_of(sources_of_many_lengths(3)));
  std::vector<Tensor> all;
  const auto step = [&](const Tokens& tokens, const std::vector<int32_t>& parents) {
    all.push_back(model->step(tokens, *cache).log_probs());
    cache->select(parents);
  };
  step({kBos, kBos, kBos}, {0, 0, 1, 2, 2, 2});
  step({4, 5, 6, 7, 8, 9}, {1, 0, 2, 4, 3});
  step({10, 11, 12, 13, 14}, {0, 1, 3, 3, 4});
  step({3, 3, 5, 7, 9}, {0});
  return all;
}

TEST(GpuSteps, AreNearTheCpusInBf16) {
  const at::NoGradGuard no_gradients;
  for (const char* attention : kAttention) {
    if (std::string_view(attention).find("topk") != std::string_view::npos) continue;  // its weights jump
    for (const NormPlace place : {NormPlace::kPre, NormPlace::kPost}) {
      ModelOptions options = options_with(attention);
      options.norm = place;
      const std::vector<Tensor> expected = steps_of(options, Precision::kFp32);
      const EmulatedGpu gpu;
      const std::vector<Tensor> found = steps_of(options, Precision::kBf16);
      for (size_t i = 0; i < found.size(); ++i) EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 0.1) << attention;
    }
  }
}

// --- what a step asks of the device ---

constexpr int64_t kBeam = 5;

/// Steps of one sentence with five hypotheses, which find their best tokens and change places.
class Steps {
 public:
  explicit Steps(ModelOptions options, Precision precision = Precision::kFp32) : model_(model_of(options)) {
    model_->set_precision(precision);
    cache_ = model_->start(ragged_of({sources_of_many_lengths(1).front()}));
    cache_->reserve(kBeam * 64);
    model_->step({kBos}, *cache_);
    cache_->select({0, 0, 0, 0, 0});
    step();
  }
  DeviceWork step() {
    const DeviceWorkCounter counter;
    model_->step({4, 5, 6, 7, 8}, *cache_).find_best({0, 1, 2, 3, 4}, 2 * kBeam, std::vector<int32_t>(kBeam, kEos), best_);
    cache_->select({1, 0, 0, 3, 2});
    return counter.work();
  }

 private:
  std::shared_ptr<Transformer> model_;
  std::unique_ptr<DecoderCache> cache_;
  BestTokens best_;
};

DeviceWork work_of_step(int64_t decoder_layers, Precision precision, const std::string& attention = "softmax") {
  ModelOptions options = options_with(attention);
  options.norm = NormPlace::kPre;
  options.decoder_layers = decoder_layers;
  return Steps(options, precision).step();
}

std::string text_of(const DeviceWork& work) {
  std::string text = "launches ";
  text += std::to_string(work.launches) + ", waits " + std::to_string(work.synchronizations) + ", copies " +
          std::to_string(work.copies_there) + " (" + std::to_string(work.bytes_there) + " bytes) and back " +
          std::to_string(work.copies_back) + " (" + std::to_string(work.bytes_back) + " bytes), allocations " +
          std::to_string(work.allocations) + ":";
  for (const auto& [name, count] : work.of_operators) {
    text += ' ';
    text += name;
    text += ' ';
    text += std::to_string(count);
  }
  return text;
}

void expect_work(Precision precision, int64_t launches_of_layer, int64_t other_launches) {
  const at::NoGradGuard no_gradients;
  const EmulatedGpu gpu;
  const DeviceWork one = work_of_step(1, precision), two = work_of_step(2, precision);
  std::cout << "one layer: " << text_of(one) << "\ntwo layers: " << text_of(two) << "\n";
  EXPECT_LE(two.launches - one.launches, launches_of_layer);
  EXPECT_LE(2 * one.launches - two.launches, other_launches);
  for (const DeviceWork& work : {one, two}) {
    EXPECT_EQ(work.synchronizations, 1);
    EXPECT_EQ(work.copies_there, 1);
    EXPECT_EQ(work.bytes_there, 24 * kBeam);
    EXPECT_EQ(work.copies_back, 1);
    EXPECT_EQ(work.bytes_back, 4 * kBeam * (2 * 2 * kBeam + 1));
  }
}

TEST(GpuSteps, AskTheDeviceForOneCopyEachWayInFp32) {
  expect_work(Precision::kFp32, 12, 5);
}

TEST(GpuSteps, AskTheDeviceForOneCopyEachWayInBf16) {
  expect_work(Precision::kBf16, 11, 6);
}

TEST(GpuSteps, AskTheDeviceForOneCopyEachWayWithAPattern) {
  const at::NoGradGuard no_gradients;
  const EmulatedGpu gpu;
  const DeviceWork work = work_of_step(2, Precision::kFp32, "{decoder_self: {type: sparsemax, pattern: {type: local, window: 3}}}");
  EXPECT_EQ(work.synchronizations, 1);
  EXPECT_EQ(work.copies_there, 1);
}

// --- the table of slots ---

TEST(GpuSteps, HaveTheTableOfTheListsOfSlots) {
  const gpu::Emulation emulated;
  const auto cache_of = [](const std::vector<int32_t>& lengths) {
    const auto shape = std::make_shared<const RaggedShape>(RaggedShape::of_lengths(lengths));
    auto cache = std::make_unique<SlotCache>(shape, std::vector<MemoryKeys>{{at::zeros({shape->num_tokens(), 8}), {}}},
                                             std::vector<Tensor>{at::empty({0, 2, 2, 2})});
    cache->set_device_slots(std::make_unique<DeviceSlots>(at::kCPU));
    return cache;
  };
  RandomStream random(5);
  const auto cache = cache_of({3, 2, 4});
  for (int i = 0; i < 150; ++i) {
    const StepKeys& keys = cache->append();
    const std::vector<int32_t> tokens(keys.positions.size(), 7);
    const DeviceStep& step = *cache->append_on_device(tokens);
    const auto list_of = [](const Tensor& list) {
      return std::vector<int32_t>(list.const_data_ptr<int32_t>(), list.const_data_ptr<int32_t>() + list.numel());
    };
    EXPECT_EQ(list_of(step.num_keys), keys.keys->count);
    EXPECT_EQ(list_of(step.positions), keys.positions);
    EXPECT_EQ(step.tokens.sum().item<int64_t>(), 7 * std::ssize(tokens));
    EXPECT_EQ(step.most_keys, *std::max_element(keys.keys->count.begin(), keys.keys->count.end()));
    for (size_t row = 0; row < tokens.size(); ++row) {
      const auto first = keys.keys->slots.begin() + keys.keys->begin[row];
      const std::vector<int32_t> expected(first, first + keys.keys->count[row]);
      ASSERT_EQ(list_of(step.slots[static_cast<int64_t>(row)].narrow(0, 0, keys.keys->count[row])), expected) << "step " << i;
    }
    std::vector<int32_t> parents;  // some end, some go on as several
    for (int32_t row = 0; row < static_cast<int32_t>(tokens.size()); ++row)
      for (uint64_t n = row == 0 ? 1 : random.next_below(3); n > 0 && parents.size() < 90; --n) parents.push_back(row);
    cache->select(parents);
    if (i % 20 == 10) cache->join(*cache_of({2, 5}));
    if (i % 30 == 15) cache->select(std::vector<int32_t>{0});  // twice between two steps
  }
}

TEST(GpuSteps, HaveMemoryThatWasReserved) {
  const at::NoGradGuard no_gradients;
  const EmulatedGpu gpu;
  const auto model = model_of(options_with("softmax"));
  const auto cache = model->start(ragged_of({sources_of_many_lengths(1).front()}));
  auto& slots = dynamic_cast<SlotCache&>(*cache);
  cache->reserve(100);
  EXPECT_EQ(slots.capacity(), 100);
  const void* const memory = slots.buffer(0).const_data_ptr();
  for (int i = 0; i < 100; ++i) model->step({4}, *cache);
  EXPECT_EQ(slots.buffer(0).const_data_ptr(), memory);
  model->step({4}, *cache);
  EXPECT_GT(slots.capacity(), 100);
}

}  // namespace
}  // namespace lacuna
