#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "attention/attention.h"
#include "attention/rows/row_numbers.h"
#include "attention/rows/row_plain.h"
#include "attention/types/topk.h"
#include "contract/attention_contract.h"

// What is peculiar to a type.
namespace lacuna::contract {
namespace {

TEST(Entmax, HasTheGradientForAlphaOfFiniteDifferences) {
  const Variant entmax = variant("entmax", "{alpha: learned}");
  constexpr double kStep = 1e-5;
  for (const double alpha : {1.015625, 1.0625, 1.1875, 1.5, 1.875, 1.9375}) {  // exact in float
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
                  : alpha < 1.1     ? 1e-4
                                    : 1e-5);
    }
  }
}

TEST(Entmax, IsEntmax15AndSparsemaxAtLearnedAlphasOfOneAndAHalfAndTwo) {
  const Variant learned = variant("entmax", "{alpha: learned}");
  const Row scores = random_row(90, 2, 14), direction = random_row(90, 1, 15);
  for (const auto& [alpha, type] : {std::pair{1.5, "entmax15"}, {2.0, "sparsemax"}}) {
    for (const Engine engine : engines()) {
      SCOPED_TRACE(std::string(type) + " on " + name_of(engine));
      const Row expected = weights_of(variant(type, ""), engine, scores), found = weights_of(learned, engine, scores, {alpha});
      const Row gradient = gradients_of(variant(type, ""), engine, scores, direction).scores;
      const Row found_gradient = gradients_of(learned, engine, scores, direction, {alpha}).scores;
      for (size_t j = 0; j < scores.size(); ++j) {
        EXPECT_NEAR(found[j], expected[j], weights_tolerance(engine)) << "key " << j;
        EXPECT_NEAR(found_gradient[j], gradient[j], is_double(engine) ? 1e-10 : kFloatGradients) << "key " << j;
      }
    }
  }
}

TEST(Entmax, IsExactAtEveryAlpha) {
  Variant learned = variant("entmax", "{alpha: learned}");
  std::vector<double> alphas = {double{1.01f}};
  for (int i = 1; i <= 64; ++i)
    alphas.push_back(1 + i / 64.0);  // exact in float; where the search has borders, within a 64th of both sides
  for (const double alpha : alphas) {
    learned.numbers = {alpha};
    for (const int n : {2, 5, 16, 300}) {
      for (const double spread : {0., 0.1, 2.0, 1e4}) {
        SCOPED_TRACE("alpha " + std::to_string(alpha) + ", " + std::to_string(n) + " keys, spread " + std::to_string(spread));
        Row scores = random_row(n, spread, 16);
        if (spread == 0) scores[0] = float{.97F};  // many small weights, that the last digit of a threshold would change together
        const Row expected = independent_weights(learned, scores);
        for (const Engine engine : engines()) {
          const Row found = weights_of(learned, engine, scores);
          const RowGradients gradients = gradients_of(learned, engine, scores, random_row(n, 1, 17));
          EXPECT_TRUE(std::isfinite(gradients.numbers[0])) << name_of(engine);
          for (size_t j = 0; j < scores.size(); ++j) EXPECT_NEAR(found[j], expected[j], weights_tolerance(engine)) << name_of(engine);
        }
      }
    }
  }
}

TEST(Entmax, StartsItsLearnedAlphasAtAlphaInitAndKeepsThemInTheirRange) {
  const auto numbers = make_row_numbers(*type_of(variant("entmax", "{alpha: learned, alpha_init: 1.2}"), "full", 3), 3, 8);
  Tensor logits = numbers->named_parameters()["alpha_logit"];
  const auto expect_alphas = [&](const Tensor& expected) {
    for (const bool with_gradients : {true, false}) {
      const at::AutoGradMode mode(with_gradients);
      const Tensor alphas = numbers->forward({})[0].values;
      EXPECT_EQ(alphas.requires_grad(), with_gradients);
      EXPECT_TRUE(at::allclose(alphas, expected, 0, 1e-6)) << alphas;
    }
  };
  expect_alphas(at::full({3}, 1.2));
  logits.detach().copy_(at::tensor({-200.f, 0.f, 200.f}));
  expect_alphas(at::tensor({1.01f, 1.505f, 2.f}));
}

TEST(Entmax, TakesNoNumberIfItsAlphaIsFixed) {
  EXPECT_EQ(make_row_numbers(*type_of(variant("entmax", "{alpha: 1.3}")), 1, 8), nullptr);
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
  const auto type = type_of(variant("entmax", "{alpha: learned}"), "full", 2);
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

TEST(Entmax, SumsTheGradientForAlphaInDoubleInEveryPrecision) {
  const auto type = type_of(variant("entmax", "{alpha: learned}"), "full", 2);
  const AttentionCall exact = call_with_alphas(*type, at::tensor({1.1, 1.7}, at::kDouble).requires_grad_());
  attention_reference(exact, {}).square().sum().backward();
  for (const bool is_core : {true, false}) {
    AttentionCall call = call_with_alphas(*type, at::tensor({1.1, 1.7}, at::kFloat).requires_grad_());
    call.q = exact.q.detach().to(at::kFloat);
    call.k = exact.k.detach().to(at::kFloat);
    call.v = exact.v.detach().to(at::kFloat);
    (is_core ? attention(call, {}) : attention_reference(call, {})).square().sum().backward();
    EXPECT_EQ(call.numbers[0].grad().scalar_type(), at::kFloat);
    EXPECT_TRUE(at::allclose(call.numbers[0].grad().to(at::kDouble), exact.numbers[0].grad(), 1e-5, 1e-5)) << is_core;
  }
}

TEST(Entmax, RefusesNumbersThatAreNotThoseOfItsRows) {
  const auto type = type_of(variant("entmax", "{alpha: learned}"), "full", 2);
  AttentionCall call = call_with_alphas(*type, at::full({3}, 1.5));
  EXPECT_THROW(attention(call, {}), ShapeError);
  call.numbers.clear();
  EXPECT_THROW(attention(call, {}), ShapeError);
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

TEST(Topk, KeepsOneKeyInSoManyAndAtLeastTheFloor) {
  const Variant topk = variant("topk", "{ratio: 4, floor: 3}");
  for (const auto& [keys, kept] : {std::pair{2, 2}, {3, 3}, {5, 3}, {12, 3}, {13, 4}, {20, 5}, {21, 6}}) {
    for (const Engine engine : engines()) {
      const Row weights = weights_of(topk, engine, random_row(keys, 1, 18));
      EXPECT_EQ(std::count_if(weights.begin(), weights.end(), [](double p) { return p > 0; }), kept) << keys << " keys";
    }
  }
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

TEST(Topk, KeepsNoMoreThanTiesWhereTheLargestScoresAreAFewUnitsApart) {
  Row scores;
  const auto add = [&](int count, int units_below) { std::fill_n(std::back_inserter(scores), count, 1 - units_below * 0x1p-24); };
  add(3, 0);
  add(10, 1);
  add(20, 2);
  add(47, 15);
  for (const Engine engine : engines())
    for (const char* options : {"{k: 11}", "{k: 12}", "{k: 13}"}) {
      const Row weights = weights_of(variant("topk", options), engine, scores);
      EXPECT_EQ(std::count_if(weights.begin(), weights.end(), [](double p) { return p > 0; }), 13) << options;
    }
}

TEST(Topk, KeepsNoMoreForAScoreThatIsMinusInfinity) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (const Engine engine : engines()) {
    const Row weights = weights_of(variant("topk", "{k: 2}"), engine, {1, 2, 3, 4, -kInfinite});
    EXPECT_NEAR(weights[2], 1 / (1 + std::exp(1)), 1e-6);
    EXPECT_NEAR(weights[3], 1 / (1 + std::exp(-1)), 1e-6);
    for (const size_t j : {0, 1, 4}) EXPECT_EQ(weights[j], 0);
    const Row few = weights_of(variant("topk", "{k: 3}"), engine, {-kInfinite, 2, -kInfinite, 2, -kInfinite});
    for (const size_t j : {1, 3}) EXPECT_NEAR(few[j], .5, 1e-6);
    for (const size_t j : {0, 2, 4}) EXPECT_EQ(few[j], 0);
  }
}

/// A row that counts how often it is looked through for its largest element or a sum.
struct CountingRow : types::PlainRow<double> {
  int* looks;

  template <class... F>
  double max(F... f) const {
    ++*looks;
    return PlainRow::max(f...);
  }
  template <class... F>
  double sum(F... f) const {
    ++*looks;
    return PlainRow::sum(f...);
  }
  template <class F>
  CountingRow pack(F keep) const {
    return {PlainRow::pack(keep), looks};
  }
};

TEST(Topk, LooksThroughARowNoMoreOftenForAScoreFarFromAllOthers) {
  for (const double outlier : {0., 1e2, 1e4, 1e6, 1e30, -1e6, -1e30}) {
    for (const int64_t k : {8, 500, 1000, 1900}) {
      Row scores = random_row(2000, 1, 19), scratch(scores.size());
      scores[77] = outlier;
      const Row expected = independent_weights(variant("topk", "{k: " + std::to_string(k) + "}"), scores);
      int looks = 0;
      types::topk::RowMap{{.k = k}}.forward(CountingRow{{scores.data(), 2000, nullptr, scratch.data()}, &looks},
                                            types::RowContext<double>());
      EXPECT_LT(looks, 60) << "k " << k << ", outlier " << outlier;
      for (size_t j = 0; j < scores.size(); ++j) EXPECT_NEAR(scores[j], expected[j], 1e-12) << j;
    }
  }
}

/// Scores that lie much closer together than their range is wide.
Row crowded_row(int length) {
  Row scores(static_cast<size_t>(length));
  for (size_t j = 0; j < scores.size(); ++j) scores[j] = 1e-30 * static_cast<double>((j * 77) % scores.size());
  scores.back() = 1;
  return scores;
}

int64_t count_of_weights(const Row& weights) {
  return std::count_if(weights.begin(), weights.end(), [](double p) { return p > 0; });
}

TEST(Topk, FindsItsThresholdAmongScoresMuchCloserThanTheirRangeIsWide) {
  for (const Engine engine : engines())
    for (const int length : {60, 2000})
      for (const int k : {9, 20, length / 2})
        EXPECT_EQ(count_of_weights(weights_of(variant("topk", "{k: " + std::to_string(k) + "}"), engine, crowded_row(length))), k)
            << name_of(engine) << ", " << length << " keys";
}

TEST(Topk, LooksThroughARowNoMoreOftenForScoresMuchCloserThanTheirRangeIsWide) {
  for (const int64_t k : {8, 500, 1900}) {
    Row scores = crowded_row(2000), scratch(scores.size());
    int looks = 0;
    types::topk::RowMap{{.k = k}}.forward(CountingRow{{scores.data(), 2000, nullptr, scratch.data()}, &looks}, types::RowContext<double>());
    EXPECT_LT(looks, 110) << "k " << k;  // 24 halvings, 64 more of the places that double has, and what is left
    EXPECT_EQ(count_of_weights(scores), k);
  }
}

TEST(Rela, LeavesARowWithoutPositiveScoresEmpty) {
  for (const Engine engine : engines()) EXPECT_EQ(weights_of(variant("rela", ""), engine, {-1, -.5, 0}), Row({0, 0, 0}));
}

}  // namespace
}  // namespace lacuna::contract
