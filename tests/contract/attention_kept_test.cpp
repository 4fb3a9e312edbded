#include <numeric>

#include "attention/cpu/run.h"
#include "attention_calls.h"

// What the forward pass leaves to the backward pass. (That of the GPU's kernels leaves nothing.)
namespace lacuna::contract {
namespace {

/// The backward pass with what the forward pass kept has the bits of one without.
void expect_the_same_bits_from_kept(const Inputs& inputs, const std::shared_ptr<const AttentionType>& type, Engine engine,
                                    bool causal = true, double dropout = 0) {
  use(engine);
  const at::NoGradGuard no_gradients;
  AttentionCall call = inputs.call(type, dtype_of(engine), causal);
  call.dropout = dropout;
  CoreResults results;
  run_core(call, training(), &results);
  EXPECT_EQ(results.kept_number.defined(), type->entry().keeps_number);
  EXPECT_EQ(results.weights.defined(), !type->entry().needs_scores(type->options()));
  const Tensor gradient = inputs.context_gradient.to(dtype_of(engine));
  const AttentionGradients found =
      run_core_backward(call, training(), gradient, {.kept_number = results.kept_number, .weights = results.weights});
  const AttentionGradients expected = run_core_backward(call, training(), gradient);
  EXPECT_TRUE(found.q.equal(expected.q) && found.k.equal(expected.k) && found.v.equal(expected.v));
  ASSERT_EQ(found.numbers.size(), expected.numbers.size());
  for (size_t i = 0; i < found.numbers.size(); ++i) EXPECT_TRUE(found.numbers[i].equal(expected.numbers[i]));
}

class AttentionKept : public PerType {};
INSTANTIATE_FOR_EACH_TYPE(AttentionKept);

TEST_P(AttentionKept, ChangesNoBit) {
  // The weights of 140 keys are not kept.
  const Inputs inputs({5, 1, 33, 90, 140}, {5, 1, 33, 90, 140}, 2, 20), cross({20, 7, 3}, {140, 30, 0}, 2, 20);
  for (const Variant& variant : variants())
    for (const char* pattern : {"full", "{type: local, window: 40}", "{type: atrous, stride: 2}"}) {
      const auto type = type_of(variant, pattern, 2);
      SCOPED_TRACE(variant.name() + ", " + pattern);
      for (const Engine engine : cpu_engines()) {
        expect_the_same_bits_from_kept(inputs, type, engine);
        if (!type->entry().info.needs_distance && pattern == std::string("full"))
          expect_the_same_bits_from_kept(cross, type, engine, false);
      }
    }
}

TEST(AttentionKept, ChangesNoBitWithDropout) {
  const Inputs inputs({5, 33, 90, 140}, {5, 33, 90, 140}, 2, 20);
  for (const char* name : {"softmax", "topk", "rela"})
    for (const Engine engine : cpu_engines()) expect_the_same_bits_from_kept(inputs, type_of(variant(name, "{}")), engine, true, 0.3);
}

/// How many weights of topk the forward pass has memory for.
int64_t kept_by_topk(const Inputs& inputs, const std::string& pattern) {
  const at::NoGradGuard no_gradients;
  const auto type = type_of(variant("topk", "{k: 3}"), pattern, inputs.q.size(1));
  CoreResults results;
  run_core(inputs.call(type, at::kDouble), training(), &results);
  return results.weights.numel();
}

TEST(AttentionKept, AreNoWeightsThatTheBackwardPassDoesNotRead) {
  const Inputs inputs({64, 1, 0}, {64, 1, 0}, 2, 8), is_long({200}, {200}, 2, 8);
  EXPECT_GE(kept_by_topk(inputs, "full"), 2 * 64 * 64);
  EXPECT_EQ(kept_by_topk(inputs, "{type: atrous, stride: 4}"), 0);
  EXPECT_EQ(kept_by_topk(inputs, "{type: fixed, block: 8}"), 0);
  EXPECT_EQ(2 * kept_by_topk(inputs, "{heads: [{type: full}, {type: atrous, stride: 4}]}"), kept_by_topk(inputs, "full"));
  EXPECT_EQ(kept_by_topk(inputs, "{type: strided, window: 4, stride: 4}"), 0);
  EXPECT_EQ(kept_by_topk(is_long, "full"), 0);
  Inputs by_slots = inputs;
  KeyRange keys = *inputs.keys;
  keys.slots.resize(65);
  std::iota(keys.slots.begin(), keys.slots.end(), 0);
  by_slots.keys = std::make_shared<KeyRange>(keys);
  EXPECT_EQ(kept_by_topk(by_slots, "full"), 0);
}

TEST(AttentionKept, ChangesNoBitWhereHeadsHavePatternsOfTheirOwn) {
  const Inputs inputs({5, 33, 33, 90, 140}, {5, 33, 33, 90, 140}, 3, 20);
  const char* const pattern = "{heads: [{type: atrous, stride: 4}, {type: full}, {type: strided, window: 2, stride: 4}]}";
  for (const char* name : {"softmax", "topk"})
    for (const Engine engine : cpu_engines()) expect_the_same_bits_from_kept(inputs, type_of(variant(name, "{}"), pattern, 3), engine);
}

TEST(AttentionKept, ChangesNoBitWhereSpansCutAPatternWithHolesToRuns) {
  const Inputs inputs({5, 33, 90}, {5, 33, 90}, 2, 20);
  for (const char* pattern : {"{type: atrous, stride: 4}", "{type: strided, window: 2, stride: 16}"})
    for (const Engine engine : cpu_engines())
      expect_the_same_bits_from_kept(inputs, type_of(variant("span", "{span_init: 1, ramp: 2}"), pattern, 2), engine);
}

}  // namespace
}  // namespace lacuna::contract
