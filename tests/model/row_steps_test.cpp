#include <ATen/record_function.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string_view>

#include "config/yaml.h"
#include "model/slot_cache.h"
#include "small_model.h"

namespace {

std::atomic<int> allocations{0};

/// Returns null if there is no memory.
void* counted(std::size_t size, std::size_t alignment) noexcept {
  ++allocations;
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}
void* allocated(std::size_t size, std::size_t alignment) {
  void* const memory = counted(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// All forms that `delete` below may meet: sanitizers have their own of those that are not replaced.
void* operator new(std::size_t size) {
  return allocated(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return counted(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return counted(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocated(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace lacuna {
namespace {

std::shared_ptr<Transformer> model_with(const std::string& attention, ModelOptions options = small_options()) {
  options.attention = parse_yaml("attention: " + attention, "test").entries()[0].second;
  return small_model(options);
}

bool has_step_rows(DecoderCache& cache) {
  return dynamic_cast<SlotCache&>(cache).step_rows() != nullptr;
}

/// The log-probabilities of four steps: hypotheses are taken twice, end and change places.
std::vector<Tensor> four_steps(Transformer& model, bool on_tensors) {
  const auto cache = model.start(ragged_of(some_sources()));
  if (on_tensors) dynamic_cast<SlotCache&>(*cache).set_step_rows(nullptr);
  std::vector<Tensor> all;
  const auto step = [&](const std::vector<int32_t>& tokens, const std::vector<int32_t>& parents) {
    all.push_back(model.step(tokens, *cache).log_probs());
    cache->select(parents);
  };
  step({kSmallBos, kSmallBos, kSmallBos}, {0, 0, 1, 2, 2, 2});
  step({4, 5, 6, 7, 8, 9}, {1, 0, 2, 4, 3});
  step({10, 11, 12, 13, 14}, {0, 1, 3, 3, 4});
  step({3, 3, 5, 7, 9}, {0});
  return all;
}

void expect_same_steps(Transformer& model, const std::string& what) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kInt8}) {
    model.set_precision(precision);
    const std::vector<Tensor> on_rows = four_steps(model, false), on_tensors = four_steps(model, true);
    for (size_t i = 0; i < on_rows.size(); ++i)
      EXPECT_TRUE(on_rows[i].equal(on_tensors[i])) << what << " in " << name_of(precision) << ", step " << i;
  }
}

TEST(RowSteps, GiveTheBitsOfStepsOnTensorsWithAnyAttention) {
  for (const char* attention :
       {"softmax", "{type: topk, k: 2}", "rela", "sparsemax", "entmax15", "{type: entmax, alpha: 1.3}", "{type: entmax, alpha: learned}",
        "{type: rela, norm: gated_rms}", "{type: softmax, norm: rms}",
        "{decoder_self: {type: span, max_span: 8, span_init: 0.75, ramp: 2}}",
        "{decoder_self: {type: softmax, pattern: {heads: [{type: strided, window: 0, stride: 2}, {type: fixed, block: 2}]}}}"}) {
    const auto model = model_with(attention);
    EXPECT_TRUE(has_step_rows(*model->start(ragged_of(some_sources())))) << attention;
    expect_same_steps(*model, attention);
  }
}

TEST(RowSteps, GiveTheBitsOfStepsOnTensorsWithAnyLayer) {
  const auto with = [](auto change) {
    ModelOptions options = small_options();
    change(options);
    return options;
  };
  const std::vector<std::pair<std::string, ModelOptions>> cases = {
      {"post-norm", small_options(NormPlace::kPost)},
      {"rms", with([](ModelOptions& o) { o.norm_type = NormType::kRms; })},
      {"rope, swiglu", with([](ModelOptions& o) { o.positions = Positions::kRope, o.activation = Activation::kSwiglu; })},
      {"gelu", with([](ModelOptions& o) { o.activation = Activation::kGelu; })},
      {"swish, bias", with([](ModelOptions& o) { o.activation = Activation::kSwish, o.output_bias = true; })},
      {"learned", with([](ModelOptions& o) { o.positions = Positions::kLearned, o.decoder_start = DecoderStart::kZero; })}};
  for (const auto& [name, options] : cases) expect_same_steps(*small_model(options), name);
}

TEST(RowSteps, AreTakenWhereNothingNeedsTensors) {
  const auto has = [](Transformer& model) { return has_step_rows(*model.start(ragged_of(some_sources()))); };
  EXPECT_TRUE(has(*small_model(small_options())));
  EXPECT_FALSE(has(*model_with("{decoder_self: {type: span, span: dynamic, max_span: 8, span_init: 0.75, ramp: 2}}")));
  EXPECT_FALSE(has(*model_with("{cross: {type: softmax, norm: layer}}")));
  EXPECT_FALSE(has(*model_with("{cross: calibrated}")));
  const auto in_double = small_model(small_options());
  in_double->to(at::kDouble);
  EXPECT_FALSE(has(*in_double));
}

/// Decodes with five hypotheses for a while, then calls `measure` around two whole steps, search aside.
template <class Measure>
void measure_steps(Precision precision, Measure measure) {
  const auto model = small_model(small_options());
  model->set_precision(precision);
  const auto cache = model->start(ragged_of({some_sources()[2]}));
  const std::vector<int32_t> tokens = {4, 5, 6, 7, 8}, parents = {1, 0, 0, 3, 2}, rows = {0, 1, 2, 3, 4}, asked(5, 2);
  model->step({kSmallBos}, *cache);
  cache->select({0, 0, 0, 0, 0});
  BestTokens best;
  const auto step = [&] {
    model->step(tokens, *cache).find_best(rows, 10, asked, best);
    cache->select(parents);
  };
  for (int i = 0; i < 4; ++i) step();
  measure([&] {
    step();
    step();
  });
}

TEST(RowSteps, AllocateNothing) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kInt8})
    measure_steps(precision, [&](const auto& steps) {
      const int before = allocations;
      steps();
      EXPECT_EQ(allocations - before, 0) << name_of(precision);
    });
}

TEST(RowSteps, CallNoOperatorOfLibTorch) {
  static std::vector<std::string> called;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kInt8})
    measure_steps(precision, [&](const auto& steps) {
      called.clear();
      const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback([](const at::RecordFunction& function) {
        if (std::string_view(function.name()).starts_with("aten::")) called.emplace_back(function.name());
        return std::unique_ptr<at::ObserverContext>();
      }));
      steps();
      at::removeCallback(handle);
      EXPECT_EQ(called, std::vector<std::string>()) << name_of(precision);
    });
}

}  // namespace
}  // namespace lacuna
