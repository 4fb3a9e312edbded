#include "attention/dense_weights.h"

#include "attention_calls.h"

// Attention in two halves (attention/dense_weights.h) is attention, whatever the type, the pattern and the engine.
namespace lacuna::contract {
namespace {

Outcome outcome_in_halves(const AttentionCall& call, const Tensor& gradient) {
  const auto identity = identity_like(*call.type, call.q.size(1));
  const Tensor weights = dense_weights(call, training()), context = dense_context(call, weights, *identity, training());
  (context * gradient.to(context.options())).sum().backward();
  Outcome outcome = {{context.detach()}};
  for (const Tensor& leaf : leaves_of(call)) outcome.all.push_back(leaf.grad());
  for (Tensor& tensor : outcome.all)
    if (tensor.defined()) tensor = tensor.cpu();
  return outcome;
}

void compare_halves(const Inputs& inputs, const Variant& variant, const std::string& pattern, bool causal, double dropout = 0) {
  const auto type = type_of(variant, pattern, inputs.q.size(1));
  AttentionCall exact = inputs.call(type, at::kDouble, causal);
  exact.dropout = dropout;
  const Outcome expected = outcome_of(exact, training(), inputs.context_gradient, /*reference=*/true);
  for (const Engine engine : call_engines()) {
    SCOPED_TRACE(variant.name() + ", " + pattern + (causal ? ", causal" : "") + ", " + name_of(engine));
    use(engine);
    AttentionCall call = inputs.call(type, dtype_of(engine), causal);
    call.dropout = dropout;
    expect_near(outcome_in_halves(call, inputs.context_gradient), expected, is_double(engine) ? kDoubleContext : kFloatContext);
  }
}

TEST(DenseWeights, MakeUpAttentionOfEveryTypeAndPattern) {
  const Inputs inputs({5, 1, 0, 33}, {5, 1, 0, 33}, 2, 20);  // one call, of wider heads
  for (const Variant& variant : all_variants()) compare_halves(inputs, variant, "full", false);
  for (const std::string& pattern : all_patterns())
    for (const bool causal : {false, true}) compare_halves(inputs, variant("softmax", ""), pattern, causal);
}

TEST(DenseWeights, MakeUpAttentionUnderDropoutAndBetweenSentencesOfOtherLengths) {
  const Inputs inputs({3, 1, 20, 2}, {90, 6, 1, 0}, 2, 24);  // two calls
  for (const char* type : {"softmax", "sparsemax", "rela"}) compare_halves(inputs, variant(type, ""), "full", false, 0.3);
}

TEST(DenseWeights, AreZeroWhereAQuerySeesNothing) {
  const Inputs inputs({2, 3}, {4, 0}, 2, 8);
  const auto type = type_of(variant("softmax", ""), "{type: local, window: 1}", 2);
  const AttentionCall call = inputs.call(type, at::kFloat);
  const at::NoGradGuard no_gradients;
  const Tensor weights = dense_weights(call, {});
  EXPECT_EQ(weights.sizes(), at::IntArrayRef({5, 2, 8}));
  EXPECT_EQ(weights.narrow(0, 0, 1).narrow(2, 2, 6).abs().max().item<float>(), 0);
  EXPECT_EQ(weights.narrow(0, 2, 3).abs().max().item<float>(), 0);
}

TEST(DenseWeights, FollowSlotsAsInBeamSearch) {
  Inputs inputs({1, 1}, {3, 3}, 2, 8);
  const auto type = type_of(variant("softmax", ""), "full", 2);
  AttentionCall call = inputs.call(type, at::kFloat);
  KeyRange keys;
  keys.begin = {0, 3};
  keys.count = {3, 3};
  keys.slots = {4, 0, 2, 4, 0, 5};  // the first two tokens are common
  call.keys = std::make_shared<const KeyRange>(keys);
  const at::NoGradGuard no_gradients;
  const Tensor found = dense_context(call, dense_weights(call, {}), *identity_like(*type, 2), {});
  EXPECT_LT((found - attention(call, {})).abs().max().item<float>(), kFloatContext);
  keys.slots = {4, 0, 2, 0, 4, 5};  // but here not at the same positions
  call.keys = std::make_shared<const KeyRange>(keys);
  EXPECT_THROW(dense_weights(call, {}), ShapeError);
}

}  // namespace
}  // namespace lacuna::contract
