#include <algorithm>
#include <limits>

#include "attention/gpu/block_schedule.h"
#include "attention_calls.h"
#include "emulation.h"

// What the contract of attention() does not ask of the GPU's kernels: bf16, rows that fill shared memory, threads that wait for each other.
namespace lacuna::contract {
namespace {

/// The kernels of tiles, for short sentences too.
cuda::Engine tiles(std::span<const cuda::TypeKernels> kernels, int (*bytes)() = shared_bytes, int64_t row_memory = cuda::kRowMemory) {
  return {kernels, bytes, /*takes_short_rows=*/false, nullptr, row_memory};
}

struct Sample {
  Sample(const Variant& variant, const std::string& pattern, const std::vector<int32_t>& lengths, int64_t d_head, bool is_causal = true)
      : type(type_of(variant, pattern, 2)), inputs(lengths, lengths, 2, d_head), causal(is_causal) {
    for (Tensor* rows : {&inputs.q, &inputs.k, &inputs.v, &inputs.context_gradient}) *rows = rows->to(at::kBFloat16).to(at::kDouble);
  }

  /// In double, of the reference.
  Outcome outcome(at::ScalarType dtype, double dropout = 0.1) const {
    AttentionCall call = inputs.call(type, dtype, causal);
    call.dropout = dropout;
    if (dtype == at::kBFloat16)
      for (Tensor& number : call.numbers) number = Inputs::leaf(number, at::kFloat);  // as a model's are
    return outcome_of(call, training(), inputs.context_gradient, /*reference=*/dtype == at::kDouble);
  }

  std::shared_ptr<const AttentionType> type;
  Inputs inputs;
  bool causal;
};

void expect_the_reference_in_bf16(const Variant& variant, const std::string& pattern, bool causal) {
  SCOPED_TRACE(variant.name() + ", " + pattern + (causal ? ", causal" : ""));
  for (const auto& [lengths, d_head] : {std::pair(std::vector<int32_t>{5, 1, 33, 100}, 20), std::pair(std::vector<int32_t>{150}, 72)}) {
    const Sample sample(variant, pattern, lengths, d_head, causal);
    for (const double dropout : {0.0, 0.1}) {  // without it, weights of 64 to 128 keys are multiplied where they are kept
      SCOPED_TRACE("dropout " + std::to_string(dropout));
      expect_near(sample.outcome(at::kBFloat16, dropout), sample.outcome(at::kDouble, dropout), kBf16Context);
    }
  }
}
void expect_the_reference_in_bf16(const std::vector<Variant>& variants) {
  for (const Variant& variant : variants) {
    if (!is_smooth(variant)) continue;
    for (const char* pattern : {"full", "{type: local, window: 40}", "{type: strided, window: 2, stride: 3}"})
      expect_the_reference_in_bf16(variant, pattern, /*causal=*/true);
    expect_the_reference_in_bf16(variant, "full", /*causal=*/false);  // rows of several tiles over the same keys are summed at once
  }
}

// Tiles that see ever other keys of a sentence, the first not its last ones: no sum is left out, and none holds what memory held before.
void expect_sums_of_every_key_in_bf16() {
  for (const char* pattern : {"{type: local, window: 8}", "{type: local, window: 40}", "{type: local, window: 70}"}) {
    for (const int32_t length : {64, 72, 90, 96, 128, 200}) {
      SCOPED_TRACE(std::string(pattern) + ", " + std::to_string(length) + " tokens");
      const Sample sample(variant("softmax", ""), pattern, {length, length}, 32, /*causal=*/false);
      expect_near(sample.outcome(at::kBFloat16, 0), sample.outcome(at::kDouble, 0), kBf16Context);
    }
  }
}

class AttentionKernels : public PerType {};
INSTANTIATE_FOR_EACH_TYPE(AttentionKernels);

TEST_P(AttentionKernels, EqualTheReferenceInBf16OnEveryEngine) {
  for (const Engine engine : call_engines()) {
    if (is_double(engine) || engine == Engine::kEmulatedShort) continue;  // short_rows_test.cpp: in bf16 on warps of 32 lanes
    SCOPED_TRACE(name_of(engine));
    use(engine);
    expect_the_reference_in_bf16(variants());
  }
}

// Beyond engines: instructions for bf16 alone.
class AttentionTargets : public testing::Test {
 protected:
  void SetUp() override { use(Engine::kAvx2); }
  void TearDown() override { use_attention_target(attention_targets().back()); }
};

TEST_F(AttentionTargets, EqualTheReferenceInBf16) {
  if (!cpu_has(CpuTarget::kAvx512Bf16)) GTEST_SKIP() << "this processor has no instructions for bf16";
  for (const CpuTarget target : {CpuTarget::kAvx512Bf16, CpuTarget::kAmx}) {
    if (!cpu_has(target)) continue;
    SCOPED_TRACE(name_of(target));
    use_attention_target(target);
    expect_the_reference_in_bf16(all_variants());
    expect_sums_of_every_key_in_bf16();
  }
}

/// Context and gradients in bf16 of a call whose k and v are tensors of their own or, packed, parts of one.
Outcome outcome_in_bf16(bool is_packed, const std::shared_ptr<const AttentionType>& type) {
  const auto queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({70, 20, 30})),
             keys = std::make_shared<RaggedShape>(RaggedShape::of_lengths({130, 0, 64}));
  at::manual_seed(8);
  const auto rows = [](const RaggedShapePtr& shape, int64_t count) {
    return at::randn({shape->num_tokens(), count, 2, 33}).to(at::kBFloat16);
  };
  const Tensor q = rows(queries, 1).select(1, 0).clone().requires_grad_(), kv = rows(keys, 2).requires_grad_(),
               gradient = rows(queries, 1).select(1, 0);
  AttentionCall call;
  call.q = q;
  if (is_packed) call.packed = kv;
  call.k = is_packed ? kv.select(1, 0) : kv.select(1, 0).contiguous();
  call.v = is_packed ? kv.select(1, 1) : kv.select(1, 1).contiguous();
  call.queries = queries;
  call.keys = std::make_shared<KeyRange>(KeyRange::of(*keys));
  call.scale = 0.2;
  call.type = type.get();
  const Tensor context = attention(call, {.training = true, .seed = 3, .step = 7});
  context.backward(gradient);
  return {{context.detach(), q.grad(), kv.grad()}};
}

// Long and short sentences, one without keys, heads that fill no tile.
void expect_the_same_bits_in_bf16() {
  const int threads = at::get_num_threads();
  for (const char* name : {"softmax", "entmax15", "topk"}) {
    SCOPED_TRACE(name);
    const auto type = type_of(variant(name, ""), "full", 2);
    const Outcome expected = outcome_in_bf16(false, type);
    for (const int count : {threads, 1, 3}) {
      at::set_num_threads(count);
      expect_same_bits(outcome_in_bf16(true, type), expected);
    }
    at::set_num_threads(threads);
  }
}

TEST_F(AttentionTargets, HaveTheSameBitsInBf16PackedAndOnAnyNumberOfThreads) {
  for (const CpuTarget target : attention_targets()) {
    SCOPED_TRACE(name_of(target));
    use_attention_target(target);
    expect_the_same_bits_in_bf16();
  }
}

TEST_P(AttentionKernels, EqualTheReferenceWhereFewRowsFitIntoSharedMemory) {
  for (const Variant& variant : variants()) {
    for (const char* pattern : {"full", "{type: strided, window: 2, stride: 3}"}) {
      SCOPED_TRACE(variant.name() + ", " + pattern);
      const Sample sample(variant, pattern, {5, 120}, 8);
      const Outcome expected = sample.outcome(at::kDouble);
      const Emulation emulation(tiles(cuda::all_emulated_kernels(), shared_bytes<66>));
      expect_near(sample.outcome(at::kFloat), expected, kFloatContext);
    }
  }
}

TEST(AttentionKernels, EqualTheReferenceWhereSeveralBlocksShareASentence) {
  for (const char* pattern : {"full", "{type: local, window: 10}", "{type: atrous, stride: 2}"}) {
    SCOPED_TRACE(pattern);
    const Sample sample(variant("softmax", ""), pattern, {7, 600}, 4);
    const Outcome expected = sample.outcome(at::kDouble);
    const Emulation emulation(tiles(cuda::all_emulated_kernels()));
    expect_near(sample.outcome(at::kFloat), expected, kFloatContext);
  }
}

TEST_P(AttentionKernels, EqualTheReferenceWhereNoRowFitsIntoSharedMemory) {
  for (const Variant& variant : variants()) {
    for (const char* pattern : {"full", "{type: strided, window: 2, stride: 3}", "{type: atrous, stride: 2}"}) {
      SCOPED_TRACE(variant.name() + ", " + pattern);
      const Sample sample(variant, pattern, {5, 120, 33}, 8);
      const Outcome expected = sample.outcome(at::kDouble);
      const Emulation emulation(tiles(cuda::all_emulated_kernels(), shared_bytes<16>));
      expect_near(sample.outcome(at::kFloat), expected, kFloatContext);
    }
  }
}

TEST(AttentionKernels, ChangeNoBitWhereTheDevicesMemoryHoldsFewRowsAtOnce) {
  const Sample sample(variant("entmax15", ""), "full", {120, 40}, 8);
  Outcome expected;
  {
    const Emulation emulation(tiles(cuda::all_emulated_kernels(), shared_bytes<16>));
    expected = sample.outcome(at::kFloat);
  }
  const Emulation emulation(tiles(cuda::all_emulated_kernels(), shared_bytes<16>, /*row_memory=*/1));
  expect_same_bits(sample.outcome(at::kFloat), expected);
}

/// A call on one sentence.
AttentionCall call_on(int32_t tokens, const AttentionType& type) {
  at::manual_seed(6);
  AttentionCall call;
  for (Tensor* rows : {&call.q, &call.k, &call.v}) *rows = at::randn({tokens, 2, 4});
  call.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({tokens}));
  call.keys = std::make_shared<KeyRange>(KeyRange::of(*call.queries));
  call.scale = 0.5;
  call.type = &type;
  return call;
}

// Rows of scores that do not fit into shared memory lie in the device's.
TEST(AttentionKernels, HaveAScheduleOfTheirOwnForLongRows) {
  const auto type = type_of(variant("softmax", ""), "full", 2);
  const AttentionCall call = call_on(1200, *type);
  cuda::MemoryRules rules = {
      .d_head = 4, .needs_scores = false, .uses_positions = false, .in_bf16 = false, .wants_gradients = false, .limit = shared_bytes<76>()};
  EXPECT_EQ(cuda::make_schedules(call, rules).size(), 1u);
  rules.wants_gradients = true;
  rules.limit = shared_bytes<16>();
  const std::vector<cuda::ScheduleLists> schedules = cuda::make_schedules(call, rules);
  ASSERT_EQ(schedules.size(), 2u);
  EXPECT_TRUE(schedules[0].tasks.empty());
  ASSERT_EQ(schedules[1].tasks.size(), 1u);
  EXPECT_LE(schedules[1].backward_bytes, rules.limit);
  EXPECT_GE(schedules[1].backward_row_bytes, 2 * 16 * 1200 * 4);  // weights and gradients of 16 rows
}

TEST(AttentionKernels, SayThatHeadsAreTooWideForSharedMemory) {
  const auto type = type_of(variant("softmax", ""), "full", 2);
  const cuda::MemoryRules rules = {.d_head = 8192,
                                   .needs_scores = false,
                                   .uses_positions = false,
                                   .in_bf16 = false,
                                   .wants_gradients = true,
                                   .limit = shared_bytes<99>()};
  try {
    cuda::make_schedules(call_on(3, *type), rules);
    FAIL() << "16 rows of 8192 numbers take more than 99 KB";
  } catch (const MachineError& error) {
    EXPECT_NE(std::string(error.what()).find("heads of 8192 columns are too wide"), std::string::npos) << error.what();
  }
}

TEST(AttentionKernels, TakeASentenceOfAHundredTokensWithHeadsOfAnyWidth) {
  constexpr int kSmallest = 99 << 10;  // bytes of a block, on the GPUs that have least
  const auto type = type_of(variant("span", ""), "{type: strided, window: 1, stride: 3}", 2);
  const AttentionCall call = call_on(100, *type);
  for (int d_head = 16; d_head <= 512; d_head += 16) {
    const cuda::MemoryRules rules = {
        .d_head = d_head, .needs_scores = true, .uses_positions = true, .in_bf16 = false, .wants_gradients = true, .limit = kSmallest};
    EXPECT_EQ(cuda::make_schedules(call, rules).size(), 1u) << d_head;  // none in the device's memory
  }
}

TEST(AttentionKernels, GiveAQueryTheSameBitsWhereverItsTileBegins) {
  const at::NoGradGuard no_gradients;
  const auto type = type_of(variant("softmax", ""), "{type: local, window: 40}", 2);
  AttentionCall all = call_on(130, *type);
  all.rows_alike = true;
  const Emulation emulation(tiles(cuda::all_threaded_kernels()));  // two warps, which share the keys
  const Tensor together = attention(all, {});
  for (const int32_t i : {50, 111, 129}) {
    AttentionCall one = all;
    one.q = all.q.narrow(0, i, 1);
    one.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({1}));
    one.first_position = {i};
    EXPECT_TRUE(at::equal(attention(one, {})[0], together[i])) << "query " << i;
  }
}

TEST_P(AttentionKernels, WaitForEachOtherWhereTheyMust) {
  for (const Variant& variant : variants()) {
    for (const char* pattern : {"full", "{type: strided, window: 1, stride: 3}"}) {
      SCOPED_TRACE(variant.name() + ", " + pattern);
      const Sample sample(variant, pattern, {1, 19, 90}, 72);  // more than two tiles of keys and 64 columns: buffers are used again
      const Outcome expected = sample.outcome(at::kDouble);
      const Emulation emulation(tiles(cuda::all_threaded_kernels()));  // two warps of four threads
      for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
        SCOPED_TRACE(dtype == at::kFloat ? "float" : "bf16");
        const Outcome found = sample.outcome(dtype);
        if (dtype == at::kFloat || is_smooth(variant)) expect_near(found, expected, dtype == at::kFloat ? kFloatContext : kBf16Context);
        expect_same_bits(sample.outcome(dtype), found);
      }
    }
  }
}

TEST(AttentionKernels, PassTheContractOnAGpu) {
  const std::vector<Engine> engines = call_engines();
  if (std::find(engines.begin(), engines.end(), Engine::kGpu) == engines.end())
    GTEST_SKIP() << "no GPU in this build or machine: the kernels ran on the CPU only (engine \"emulated GPU\")";
  SUCCEED() << "every test of the contract had the engine \"GPU\"";
}

}  // namespace
}  // namespace lacuna::contract
