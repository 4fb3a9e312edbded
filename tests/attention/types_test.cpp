#include <algorithm>
#include <numeric>

#include "attention/attention.h"
#include "contract/attention_contract.h"

// What is peculiar to a type.
namespace lacuna::contract {
namespace {

TEST(Entmax, HasTheGradientForAlphaOfFiniteDifferences) {
  const Variant entmax = variant("entmax", "{}");
  constexpr double kStep = 1e-5;
  for (const double alpha : {1.05, 1.2, 1.5, 1.9}) {
    for (const Engine engine : engines()) {
      SCOPED_TRACE("alpha " + std::to_string(alpha) + " on " + name_of(engine));
      const Row scores = random_row(20, 1.5, 12), direction = random_row(20, 1, 13);
      const auto loss = [&](double at) {
        const Row weights = weights_of(entmax, Engine::kPlainDouble, scores, {at});
        return std::inner_product(weights.begin(), weights.end(), direction.begin(), 0.0);
      };
      const double expected = (loss(alpha + kStep) - loss(alpha - kStep)) / (2 * kStep);
      EXPECT_NEAR(gradients_of(entmax, engine, scores, direction, {alpha}).numbers[0], expected,
                  is_double(engine) ? 1e-7
                  : alpha < 1.1     ? 1e-3
                                    : 1e-5);
    }
  }
}

TEST(Entmax, IsSoftmaxAtOneSparsemaxAtTwoAndEntmax15Between) {
  const Row scores = random_row(30, 2, 14);
  for (const Engine engine : engines()) {
    EXPECT_EQ(weights_of(variant("entmax", "{alpha: 1}"), engine, scores), weights_of(variant("softmax", ""), engine, scores));
    EXPECT_EQ(weights_of(variant("entmax", "{alpha: 1.5}"), engine, scores), weights_of(variant("entmax15", ""), engine, scores));
    EXPECT_EQ(weights_of(variant("entmax", "{alpha: 2}"), engine, scores), weights_of(variant("sparsemax", ""), engine, scores));
  }
}

/// A call with unit-sized q, k and v of four sentences, and its learned alphas.
AttentionCall call_with_alphas(const AttentionType& type, const Tensor& alphas) {
  at::manual_seed(4);
  const auto shape = std::make_shared<RaggedShape>(RaggedShape::of_lengths({5, 1, 0, 9}));
  AttentionCall call;
  call.q = at::randn({15, 2, 8}, alphas.options()).requires_grad_();
  call.k = at::randn({15, 2, 8}, alphas.options()).requires_grad_();
  call.v = at::randn({15, 2, 8}, alphas.options()).requires_grad_();
  call.queries = shape;
  call.keys = std::make_shared<KeyRange>(KeyRange::of(*shape));
  call.type = &type;
  call.numbers = {alphas};
  return call;
}

TEST(Entmax, TakesAnAlphaForEachHeadOrForEachRowAndGivesItsGradient) {
  const auto type = type_of(variant("entmax", "{}"), "full", 2);
  const Tensor per_head = at::tensor({1.2, 1.7}, at::kDouble), per_row = 1.1 + 0.8 * at::rand({15, 2}, at::kDouble);
  for (const Tensor& alphas : {per_head, per_row}) {
    const AttentionCall core = call_with_alphas(*type, alphas.clone().requires_grad_());
    const AttentionCall reference = call_with_alphas(*type, alphas.clone().requires_grad_());
    const Tensor found = attention(core, {}), expected = attention_reference(reference, {});
    found.square().sum().backward();
    expected.square().sum().backward();
    EXPECT_TRUE(at::allclose(found, expected, 1e-10, 1e-12));
    EXPECT_TRUE(at::allclose(core.q.grad(), reference.q.grad(), 1e-10, 1e-12));
    EXPECT_TRUE(at::allclose(core.numbers[0].grad(), reference.numbers[0].grad(), 1e-10, 1e-12));
    EXPECT_GT(core.numbers[0].grad().abs().max().item<double>(), 1e-3);
  }
}

TEST(Topk, IsDenseWhenTranslatingIfItIsToSparsifyInTrainingOnly) {
  const auto type = type_of(variant("topk", "{k: 1, sparsify: train}"));
  const auto dense = type_of(variant("softmax", ""));
  const at::NoGradGuard no_gradients;
  AttentionCall call = call_with_alphas(*type, at::ones({2}));
  call.numbers.clear();
  AttentionCall softmax = call;
  softmax.type = dense.get();
  const Tensor expected = attention(softmax, {});
  EXPECT_TRUE(at::allclose(attention(call, {}), expected));
  EXPECT_FALSE(at::allclose(attention(call, {.training = true}), expected));
}

TEST(Topk, KeepsTiesAtTheThreshold) {
  for (const Engine engine : engines()) {
    const Row weights = weights_of(variant("topk", "{k: 2}"), engine, {1, 0, 1, -1, 1});
    EXPECT_EQ(weights[1], 0);
    EXPECT_EQ(weights[3], 0);
    for (const int j : {0, 2, 4}) EXPECT_NEAR(weights[static_cast<size_t>(j)], 1 / 3., 1e-6);
  }
}

TEST(Topk, FindsItsThresholdAmongScoresThatLieTogether) {
  Row scores(200);
  for (size_t j = 0; j < scores.size(); ++j) scores[j] = 1 + static_cast<double>((j * 77) % 200) * 0x1p-23;  // neighbours in float
  scores[100] = -1e4;
  for (const Engine engine : engines()) {
    const Row weights = weights_of(variant("topk", "{k: 5}"), engine, scores);
    EXPECT_EQ(std::count_if(weights.begin(), weights.end(), [](double p) { return p > 0; }), 5);
  }
}

TEST(Rela, LeavesARowWithoutPositiveScoresEmpty) {
  for (const Engine engine : engines()) EXPECT_EQ(weights_of(variant("rela", ""), engine, {-1, -.5, 0}), Row({0, 0, 0}));
}

}  // namespace
}  // namespace lacuna::contract
