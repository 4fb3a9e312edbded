#include <cmath>
#include <limits>
#include <numeric>

#include "attention/attention.h"
#include "attention/rows/row_numbers.h"
#include "contract/attention_contract.h"

// What is peculiar to the type `span`.
namespace lacuna::contract {
namespace {

constexpr const char* kFew = "{max_span: 4, span_init: 1.5, ramp: 2}";

TEST(Span, IsSoftmaxIfItReachesEveryKey) {
  const Variant span = variant("span", "{max_span: 100, span_init: 100}"), softmax = variant("softmax", "");
  const Row scores = random_row(60, 2, 1), direction = random_row(60, 1, 2);
  for (const Engine engine : engines()) {
    SCOPED_TRACE(name_of(engine));
    const Row expected = weights_of(softmax, engine, scores), found = weights_of(span, engine, scores);
    const RowGradients gradients = gradients_of(span, engine, scores, direction);
    const Row expected_gradient = gradients_of(softmax, engine, scores, direction).scores;
    EXPECT_EQ(gradients.numbers[0], 0);
    for (size_t j = 0; j < scores.size(); ++j) {
      EXPECT_NEAR(found[j], expected[j], weights_tolerance(engine));
      EXPECT_NEAR(gradients.scores[j], expected_gradient[j], is_double(engine) ? 1e-12 : kFloatGradients);
    }
  }
}

TEST(Span, TakesNoNoticeOfScoresBeyondIt) {
  Row scores = random_row(30, 2, 3), other = scores;
  for (const size_t far : {0, 11, 19, 29}) other[far] = 1e4;  // the query stands at 15
  for (const Engine engine : engines())
    EXPECT_EQ(weights_of(variant("span", kFew), engine, other), weights_of(variant("span", kFew), engine, scores)) << name_of(engine);
}

TEST(Span, GivesKeysBeyondItNoWeightHoweverInfiniteTheirScores) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const Variant span = variant("span", kFew);
  const Row scores = random_row(30, 2, 3);
  for (const double infinite : {kInfinite, -kInfinite}) {
    Row other = scores;
    for (const size_t far : {0, 11, 19, 29}) other[far] = infinite;  // the query stands at 15
    for (const Engine engine : engines()) EXPECT_EQ(weights_of(span, engine, other), weights_of(span, engine, scores)) << name_of(engine);
  }
}

TEST(Span, GivesKeysBeyondItNoWeightWhereAScoreWithinIsNoNumber) {
  for (const double spoilt : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    Row scores = random_row(30, 2, 3);
    scores[14] = spoilt;
    for (const Engine engine : engines()) {
      const Row weights = weights_of(variant("span", kFew), engine, scores);
      for (const size_t far : {0, 11, 19, 29}) EXPECT_EQ(weights[far], 0) << name_of(engine);
    }
  }
}

TEST(Span, CanGrowAgainFromZero) {
  const Variant span = variant("span", "{span_init: 0}");
  for (const Engine engine : engines())
    EXPECT_GT(std::abs(gradients_of(span, engine, random_row(9, 1, 4), random_row(9, 1, 5)).numbers[0]), 1e-3) << name_of(engine);
}

std::shared_ptr<RowNumbers> numbers_of(const std::string& options) {
  return make_row_numbers(*type_of(variant("span", options), "full", 3), 3, 16);
}

TEST(Span, StartsAtSpanInit) {
  const Tensor x = at::randn({5, 16});
  EXPECT_TRUE(at::equal(numbers_of("{span_init: 20}")->forward(x)[0].values, at::full({3}, 20.f)));
  EXPECT_TRUE(at::allclose(numbers_of("{span: dynamic, span_init: 20}")->forward(x)[0].values, at::full({5, 3}, 20.f), 1e-6));
}

/// A module of dynamic spans that has learned something.
std::shared_ptr<RowNumbers> learned_dynamic_numbers() {
  const auto numbers = numbers_of("{span: dynamic, max_span: 30}");
  const at::NoGradGuard no_gradients;
  at::manual_seed(6);
  numbers->named_parameters()["span_weight"].normal_();
  return numbers;
}

TEST(Span, OfAQueryIsASigmoidOfTheLayersInput) {
  const auto numbers = learned_dynamic_numbers();
  const auto parameters = numbers->named_parameters();
  const Tensor x = at::randn({7, 16});
  const Tensor expected = 30 * (x.matmul(parameters["span_weight"].t()) + parameters["span_bias"]).sigmoid();
  EXPECT_TRUE(at::allclose(numbers->forward(x)[0].values, expected, 1e-4, 1e-4));
  const at::NoGradGuard no_gradients;
  EXPECT_TRUE(at::allclose(numbers->forward(x)[0].values, expected, 1e-4, 1e-4));
}

TEST(Span, OfAQueryTakesTheLayersInputInBf16Too) {
  const auto numbers = learned_dynamic_numbers();
  const Tensor x = at::randn({7, 16}).to(at::kBFloat16);
  for (const bool with_gradients : {true, false}) {
    const at::AutoGradMode mode(with_gradients);
    const Tensor found = numbers->forward(x)[0].values;
    EXPECT_EQ(found.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(found, numbers->forward(x.to(at::kFloat))[0].values));
  }
}

TEST(Span, OfAQueryHasTheSameBitsInAnyBatch) {
  const auto numbers = learned_dynamic_numbers();
  const at::NoGradGuard no_gradients;
  const Tensor x = at::randn({43, 16}), all = numbers->forward(x)[0].values;
  for (int64_t first = 0; first < 43; ++first)
    for (const int64_t count : {1, 4, 11})
      if (first + count <= 43) {
        EXPECT_TRUE(at::equal(numbers->forward(x.narrow(0, first, count))[0].values, all.narrow(0, first, count)));
      }
}

TEST(Span, OfAHeadStaysBetweenZeroAndMaxSpan) {
  const std::vector<ParameterRange> ranges = numbers_of("{max_span: 30}")->ranges();
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].name, "span_ratio");
  EXPECT_EQ(ranges[0].lowest, 0);
  EXPECT_EQ(ranges[0].highest, 1);
  EXPECT_TRUE(numbers_of("{span: dynamic}")->ranges().empty());
}

TEST(Span, GivesItsPenalty) {
  EXPECT_EQ(numbers_of("{penalty: 0.25}")->forward({})[0].penalty, 0.25);
  EXPECT_EQ(numbers_of("{span: dynamic, penalty: 0.25}")->forward(at::zeros({1, 16}))[0].penalty, 0.25);
}

/// Self-attention of unit-sized q, k and v with these spans.
AttentionCall call_with_spans(const AttentionType& type, const Tensor& spans, const std::vector<int32_t>& lengths) {
  const auto shape = std::make_shared<RaggedShape>(RaggedShape::of_lengths(lengths));
  at::manual_seed(7);
  AttentionCall call;
  for (Tensor* rows : {&call.q, &call.k, &call.v})
    *rows = at::randn({shape->num_tokens(), 2, 8}, at::kDouble).to(spans.scalar_type()).requires_grad_();
  call.queries = shape;
  call.keys = std::make_shared<KeyRange>(KeyRange::of(*shape));
  call.type = &type;
  call.numbers = {spans};
  return call;
}

TEST(Span, TakesASpanForEachHeadOrForEachRowAndGivesItsGradient) {
  at::manual_seed(8);
  const Tensor per_head = at::tensor({0.7, 5.3}, at::kDouble), per_row = 9 * at::rand({44, 2}, at::kDouble);
  for (const std::string& pattern : all_patterns())
    for (const Tensor& spans : {per_head, per_row})
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(pattern + (causal ? ", causal" : ""));
        const auto type = type_of(variant("span", "{ramp: 3}"), pattern, 2);
        AttentionCall core = call_with_spans(*type, spans.clone().requires_grad_(), {13, 1, 0, 30});
        AttentionCall reference = call_with_spans(*type, spans.clone().requires_grad_(), {13, 1, 0, 30});
        core.causal = reference.causal = causal;
        const Tensor found = attention(core, {}), expected = attention_reference(reference, {});
        found.square().sum().backward();
        expected.square().sum().backward();
        EXPECT_TRUE(at::allclose(found, expected, 1e-10, 1e-12));
        EXPECT_TRUE(at::allclose(core.q.grad(), reference.q.grad(), 1e-10, 1e-12));
        EXPECT_TRUE(at::allclose(core.k.grad(), reference.k.grad(), 1e-10, 1e-12));
        EXPECT_TRUE(at::allclose(core.v.grad(), reference.v.grad(), 1e-10, 1e-12));
        EXPECT_TRUE(at::allclose(core.numbers[0].grad(), reference.numbers[0].grad(), 1e-10, 1e-12));
      }
}

/// Head 0 reaches 3 positions, head 1 all 30; what head 0 must not look at is not a number.
AttentionCall call_with_spoilt_keys(const AttentionType& type, at::ScalarType dtype) {
  const at::NoGradGuard no_gradients;
  AttentionCall call = call_with_spans(type, at::tensor({1.5, 40.0}, dtype), {30});
  call.causal = true;
  for (Tensor* rows : {&call.k, &call.v}) {
    *rows = rows->detach().clone();
    rows->select(1, 0).narrow(0, 0, 12).fill_(std::numeric_limits<double>::quiet_NaN());
  }
  return call;
}

// The kernels for GPUs give keys beyond the span weight 0, but read them.

TEST(Span, DoesNotTouchKeysBeyondItAtTranslation) {
  const auto type = type_of(variant("span", "{ramp: 2}"), "full", 2);
  const at::NoGradGuard no_gradients;
  for (const Engine engine : cpu_engines()) {
    use(engine);
    AttentionCall call = call_with_spoilt_keys(*type, is_double(engine) ? at::kDouble : at::kFloat);
    call.q = call.q.narrow(0, 29, 1);
    call.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({1}));
    call.first_position = {29};
    KeyRange by_slots = *call.keys;
    by_slots.slots.resize(30);
    std::iota(by_slots.slots.begin(), by_slots.slots.end(), 0);
    EXPECT_TRUE(attention(call, {}).isfinite().all().item<bool>()) << name_of(engine);
    call.keys = std::make_shared<KeyRange>(by_slots);
    EXPECT_TRUE(attention(call, {}).isfinite().all().item<bool>()) << name_of(engine) << ", by slots";
  }
}

TEST(Span, DoesNotTouchKeysBeyondItAmongManyQueries) {
  const auto type = type_of(variant("span", "{ramp: 2}"), "full", 2);
  const at::NoGradGuard no_gradients;
  for (const Engine engine : cpu_engines()) {
    use(engine);
    const Tensor context = attention(call_with_spoilt_keys(*type, is_double(engine) ? at::kDouble : at::kFloat), {});
    EXPECT_TRUE(context.narrow(0, 16, 14).isfinite().all().item<bool>()) << name_of(engine);
  }
}

}  // namespace
}  // namespace lacuna::contract
