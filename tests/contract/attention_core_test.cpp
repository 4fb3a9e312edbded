#include <algorithm>
#include <mutex>
#include <numeric>

#include "attention/attention.h"
#include "attention/row_numbers.h"
#include "attention_contract.h"

// The contract of attention() itself, for every type of the registry, every pattern and every engine, against the reference in double.
namespace lacuna::contract {
namespace {

const char* const kPatterns[] = {"full", "{type: local, window: 2}"};

// Contexts and gradients of unit-sized inputs in double: sums of at most some hundred products in another order.
constexpr double kDoubleContext = 1e-10;
// The same in float: 6e-8 times the length of the sums, and what a threshold makes of it.
constexpr double kFloatContext = 2e-5;

/// The tensors of a call, made in double and the same for the same seed.
struct Inputs {
  Inputs(std::vector<int32_t> query_lengths, std::vector<int32_t> key_lengths, int64_t heads, int64_t d_head, double spread = 1) {
    queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths(query_lengths));
    keys = std::make_shared<RaggedShape>(RaggedShape::of_lengths(key_lengths));
    at::manual_seed(5);
    q = at::randn({queries->num_tokens(), heads, d_head}, at::kDouble) * spread;
    k = at::randn({keys->num_tokens(), heads, d_head}, at::kDouble);
    v = at::randn({keys->num_tokens(), heads, d_head}, at::kDouble);
    context_gradient = at::randn({queries->num_tokens(), heads, d_head}, at::kDouble);
  }

  AttentionCall call(const std::shared_ptr<const AttentionType>& type, at::ScalarType dtype, bool causal = false) const {
    AttentionCall call;
    call.q = leaf(q, dtype);
    call.k = leaf(k, dtype);
    call.v = leaf(v, dtype);
    call.queries = queries;
    call.keys = std::make_shared<KeyRange>(KeyRange::of(*keys));
    call.causal = causal;
    call.scale = 1 / std::sqrt(static_cast<double>(q.size(2)));
    call.type = type.get();
    if (const auto module = make_row_numbers(*type, q.size(1)))
      for (const RowNumber& number : module->forward()) call.numbers.push_back(leaf(number.values, dtype));
    return call;
  }

  static Tensor leaf(const Tensor& values, at::ScalarType dtype) { return values.to(dtype).clone().detach().requires_grad_(); }

  RaggedShapePtr queries, keys;
  Tensor q, k, v, context_gradient;
};

struct Outcome {
  Tensor context, q, k, v;  // all but the first are gradients
  std::vector<Tensor> numbers = {};
  std::vector<Tensor> all() const { return {context, q, k, v}; }
};

Outcome outcome_of(const AttentionCall& call, const ForwardContext& context, const Tensor& gradient, bool reference = false) {
  const Tensor result = reference ? attention_reference(call, context) : attention(call, context);
  result.backward(gradient.to(result.scalar_type()));
  Outcome outcome = {result.detach(), call.q.grad(), call.k.grad(), call.v.grad()};
  for (const Tensor& number : call.numbers) outcome.numbers.push_back(number.grad());
  return outcome;
}

at::ScalarType dtype_of(Engine engine) {
  return is_double(engine) ? at::kDouble : at::kFloat;
}

void expect_near(const Tensor& found, const Tensor& expected, double tolerance, const char* name) {
  if (expected.numel() == 0) return;
  const double size = std::max(1.0, expected.abs().max().item<double>());
  EXPECT_LT((found.to(at::kDouble) - expected).abs().max().item<double>(), tolerance * size) << name;
}

void expect_near(const Outcome& found, const Outcome& expected, double tolerance) {
  const char* const names[] = {"context", "gradient of q", "gradient of k", "gradient of v"};
  for (size_t i = 0; i < 4; ++i) expect_near(found.all()[i], expected.all()[i], tolerance, names[i]);
  ASSERT_EQ(found.numbers.size(), expected.numbers.size());
  for (size_t i = 0; i < found.numbers.size(); ++i)
    expect_near(found.numbers[i], expected.numbers[i], tolerance, "gradient of a learned number");
}

void expect_same_bits(const Outcome& found, const Outcome& expected) {
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(at::equal(found.all()[i], expected.all()[i])) << "tensor " << i;
}

void compare_with_reference(const Inputs& inputs, const Variant& variant, const std::string& pattern, bool causal,
                            const ForwardContext& context, double dropout = 0) {
  const auto type = type_of(variant, pattern, inputs.q.size(1));
  AttentionCall exact = inputs.call(type, at::kDouble, causal);
  exact.dropout = dropout;
  const Outcome expected = outcome_of(exact, context, inputs.context_gradient, /*reference=*/true);
  for (const Engine engine : engines()) {
    SCOPED_TRACE(variant.name() + ", " + pattern + (causal ? ", causal, " : ", ") + name_of(engine));
    use(engine);
    AttentionCall call = inputs.call(type, dtype_of(engine), causal);
    call.dropout = dropout;
    expect_near(outcome_of(call, context, inputs.context_gradient), expected, is_double(engine) ? kDoubleContext : kFloatContext);
  }
}

ForwardContext training() {
  return {.training = true, .seed = 3, .step = 7};
}

TEST(AttentionCore, EqualsTheReferenceForEveryTypeAndPattern) {
  const Inputs inputs({5, 1, 0, 17, 33}, {5, 1, 0, 17, 33}, 2, 20);
  for (const Variant& variant : all_variants())
    for (const char* pattern : kPatterns)
      for (const bool causal : {false, true}) compare_with_reference(inputs, variant, pattern, causal, training());
}

TEST(AttentionCore, EqualsTheReferenceBetweenSentencesOfOtherLengths) {
  const Inputs inputs({3, 1, 20, 4}, {15, 6, 1, 40}, 2, 64);
  for (const Variant& variant : all_variants()) compare_with_reference(inputs, variant, "full", false, training());
}

TEST(AttentionCore, EqualsTheReferenceOnLongRowsThatAreMostlyZero) {
  const Inputs inputs({150}, {150}, 1, 8, /*spread=*/6);
  for (const Variant& variant : all_variants()) compare_with_reference(inputs, variant, "full", true, training(), 0.2);
}

TEST(AttentionCore, EqualsTheReferenceWithAPatternForEachHead) {
  const Inputs inputs({9, 20}, {9, 20}, 3, 8);
  for (const Variant& variant : all_variants())
    compare_with_reference(inputs, variant, "{heads: [full, {type: local, window: 1}, {type: local, window: 4}]}", false, training());
}

TEST(AttentionCore, EqualsTheReferenceUnderDropout) {
  const Inputs inputs({5, 1, 17}, {5, 1, 17}, 2, 16);
  for (const Variant& variant : all_variants())
    for (const char* pattern : kPatterns) compare_with_reference(inputs, variant, pattern, true, training(), 0.3);
}

TEST(AttentionCore, HasTheGradientOfFiniteDifferences) {
  const Inputs inputs({3, 4}, {3, 4}, 2, 3);
  for (const Variant& variant : all_variants()) {
    SCOPED_TRACE(variant.name());
    const auto type = type_of(variant);
    const AttentionCall call = inputs.call(type, at::kDouble);
    const Outcome outcome = outcome_of(call, training(), inputs.context_gradient);
    const auto loss = [&](const AttentionCall& at) { return (attention(at, training()) * inputs.context_gradient).sum().item<double>(); };
    const at::NoGradGuard no_gradients;
    constexpr double kStep = 1e-6;
    std::vector<std::pair<Tensor, Tensor>> checked = {{call.q, outcome.q}, {call.k, outcome.k}, {call.v, outcome.v}};
    for (size_t i = 0; i < call.numbers.size(); ++i) checked.emplace_back(call.numbers[i], outcome.numbers[i]);
    for (const auto& [values, gradient] : checked) {
      for (int64_t i = 0; i < values.numel(); ++i) {
        double* element = values.data_ptr<double>() + i;
        const double before = *element;
        *element = before + kStep;
        const double up = loss(call);
        *element = before - kStep;
        const double down = loss(call);
        *element = before;
        ASSERT_NEAR(gradient.contiguous().data_ptr<double>()[i], (up - down) / (2 * kStep), kFiniteDifference * 10) << "element " << i;
      }
    }
  }
}

TEST(AttentionCore, GivesContextZeroToAQueryThatSeesNoKey) {
  const Inputs inputs({2, 3}, {0, 4}, 2, 8);
  for (const Variant& variant : all_variants()) {
    for (const Engine engine : engines()) {
      use(engine);
      const auto type = type_of(variant);
      const Outcome outcome = outcome_of(inputs.call(type, dtype_of(engine)), training(), inputs.context_gradient);
      EXPECT_EQ(outcome.context.narrow(0, 0, 2).abs().max().item<double>(), 0) << variant.name();
      EXPECT_EQ(outcome.q.narrow(0, 0, 2).abs().max().item<double>(), 0) << variant.name();
    }
  }
}

TEST(AttentionCore, GivesKeysOutsideThePatternNoWeightAndNoGradient) {
  Inputs inputs({12}, {12}, 1, 8);
  inputs.context_gradient.narrow(0, 1, 11).zero_();  // only query 0 counts; it sees keys 0 to 2
  Inputs other = inputs;
  other.k = at::cat({inputs.k.narrow(0, 0, 3), at::full({9, 1, 8}, 1e3, at::kDouble)});
  other.v = at::cat({inputs.v.narrow(0, 0, 3), at::full({9, 1, 8}, 1e3, at::kDouble)});
  for (const Variant& variant : all_variants()) {
    for (const Engine engine : engines()) {
      use(engine);
      const auto type = type_of(variant, "{type: local, window: 2}");
      const Outcome found = outcome_of(inputs.call(type, dtype_of(engine)), training(), inputs.context_gradient);
      const Outcome changed = outcome_of(other.call(type, dtype_of(engine)), training(), inputs.context_gradient);
      EXPECT_TRUE(at::equal(found.context[0], changed.context[0])) << variant.name();
      EXPECT_EQ(found.k.narrow(0, 3, 9).abs().max().item<double>(), 0) << variant.name();
      EXPECT_EQ(found.v.narrow(0, 3, 9).abs().max().item<double>(), 0) << variant.name();
    }
  }
}

TEST(AttentionCore, DoesNotChangeABitWithWhatElseIsInTheBatch) {
  const Inputs together({4, 1, 19, 7}, {6, 30, 19, 7}, 2, 24);
  for (const Variant& variant : all_variants()) {
    for (const Engine engine : engines()) {
      SCOPED_TRACE(variant.name() + " on " + name_of(engine));
      use(engine);
      const auto type = type_of(variant);
      AttentionCall call = together.call(type, dtype_of(engine));
      call.dropout = 0.1;
      const Outcome all = outcome_of(call, training(), together.context_gradient);
      for (int64_t b = 0; b < 4; ++b) {
        Inputs alone = together;
        const int64_t first = together.queries->begin(b), queries = together.queries->length(b);
        const int64_t first_key = together.keys->begin(b), keys = together.keys->length(b);
        alone.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({static_cast<int32_t>(queries)}, {b}));
        alone.keys = std::make_shared<RaggedShape>(RaggedShape::of_lengths({static_cast<int32_t>(keys)}, {b}));
        alone.q = together.q.narrow(0, first, queries);
        alone.k = together.k.narrow(0, first_key, keys);
        alone.v = together.v.narrow(0, first_key, keys);
        AttentionCall one = alone.call(type, dtype_of(engine));
        one.dropout = 0.1;
        expect_same_bits(outcome_of(one, training(), together.context_gradient.narrow(0, first, queries)),
                         {all.context.narrow(0, first, queries), all.q.narrow(0, first, queries), all.k.narrow(0, first_key, keys),
                          all.v.narrow(0, first_key, keys)});
      }
    }
  }
}

TEST(AttentionCore, DoesNotChangeABitWithTheNumberOfThreads) {
  const Inputs inputs({9, 30, 2, 14}, {9, 30, 2, 14}, 2, 16);
  const int before = at::get_num_threads();
  for (const Variant& variant : all_variants()) {
    const auto type = type_of(variant);
    at::set_num_threads(1);
    const Outcome one = outcome_of(inputs.call(type, at::kFloat, true), training(), inputs.context_gradient);
    at::set_num_threads(3);
    const Outcome three = outcome_of(inputs.call(type, at::kFloat, true), training(), inputs.context_gradient);
    at::set_num_threads(before);
    SCOPED_TRACE(variant.name());
    expect_same_bits(three, one);
    for (size_t i = 0; i < one.numbers.size(); ++i) EXPECT_TRUE(at::equal(three.numbers[i], one.numbers[i])) << "number " << i;
  }
}

TEST(AttentionCore, ReadsKeysThroughSlotsAsIfTheyWereGathered) {
  const Inputs inputs({1, 1, 1}, {7, 7, 7}, 2, 24);
  const std::vector<int32_t> slots = {20, 3, 3, 5, 11, 0, 8, /**/ 1, 2, /**/ 13, 19, 4, 6};
  const std::vector<int32_t> begin = {0, 7, 9}, count = {7, 2, 4};
  for (const Variant& variant : all_variants()) {
    for (const Engine engine : engines()) {
      use(engine);
      const auto type = type_of(variant);
      AttentionCall by_slots = inputs.call(type, dtype_of(engine)), gathered = by_slots;
      KeyRange range;
      range.begin = begin;
      range.count = count;
      gathered.keys = std::make_shared<KeyRange>(range);
      range.slots = slots;
      by_slots.keys = std::make_shared<KeyRange>(range);
      const Tensor index = at::tensor(std::vector<int64_t>(slots.begin(), slots.end()), at::kLong);
      gathered.k = by_slots.k.index_select(0, index);
      gathered.v = by_slots.v.index_select(0, index);
      EXPECT_TRUE(at::equal(attention(by_slots, {}), attention(gathered, {}))) << variant.name();
    }
  }
}

TEST(AttentionCore, GivesTheLastQueryAloneWhatItGivesItAmongAll) {
  const Inputs inputs({11}, {11}, 2, 16);
  for (const Variant& variant : all_variants()) {
    for (const char* pattern : kPatterns) {
      for (const Engine engine : engines()) {
        use(engine);
        const auto type = type_of(variant, pattern);
        const AttentionCall all = inputs.call(type, dtype_of(engine), /*causal=*/true);
        AttentionCall last = all;
        last.q = all.q.narrow(0, 10, 1);
        last.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({1}));
        last.first_position = {10};
        const Tensor difference = (attention(last, {})[0] - attention(all, {})[10]).abs();
        EXPECT_LT(difference.max().item<double>(), is_double(engine) ? kDoubleContext : kFloatContext) << variant.name();
      }
    }
  }
}

TEST(AttentionCore, TakesRowsFromAWiderTensor) {
  const Inputs inputs({6, 9}, {6, 9}, 2, 16);
  const auto type = type_of(all_variants()[0]);
  const AttentionCall apart = inputs.call(type, at::kFloat);
  const Tensor fused = at::cat({apart.q, apart.k, apart.v}, 1).detach();  // (T, 3 H, d)
  AttentionCall together = apart;
  together.q = fused.narrow(1, 0, 2);
  together.k = fused.narrow(1, 2, 2);
  together.v = fused.narrow(1, 4, 2);
  EXPECT_TRUE(at::equal(attention(together, {}), attention(apart, {})));
}

TEST(AttentionCore, RefusesShapesThatDoNotFit) {
  const Inputs inputs({3}, {3}, 2, 8);
  const auto type = type_of(all_variants()[0]);
  AttentionCall call = inputs.call(type, at::kFloat);
  call.k = call.k.narrow(0, 0, 2);
  EXPECT_THROW(attention(call, {}), ShapeError);
}

/// Keeps every row it sees.
class Rows : public AttentionProbe {
 public:
  void see(int layer, AttentionSite site, int head, int64_t sentence, int64_t query, std::span<const float> weights,
           std::span<const int32_t> key_positions) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(layer, 2);
    EXPECT_EQ(site, AttentionSite::kCross);
    EXPECT_EQ(weights.size(), key_positions.size());
    rows[{head, sentence, query}] = {weights.begin(), weights.end()};
  }
  std::map<std::tuple<int, int64_t, int64_t>, std::vector<float>> rows;

 private:
  std::mutex mutex_;
};

TEST(AttentionCore, ShowsAProbeTheWeightsBeforeDropout) {
  const Inputs inputs({1, 5}, {4, 90}, 2, 8);
  for (const Variant& variant : all_variants()) {
    Rows core, reference;
    const auto type = type_of(variant);
    AttentionCall call = inputs.call(type, at::kFloat);
    call.layer = 2;
    call.site = AttentionSite::kCross;
    call.dropout = 0.5;
    ForwardContext context = training();
    context.probe = &core;
    attention(call, context);
    context.probe = &reference;
    attention_reference(call, context);
    ASSERT_EQ(core.rows.size(), 12u) << variant.name();
    for (const auto& [place, weights] : reference.rows)
      for (size_t j = 0; j < weights.size(); ++j) ASSERT_NEAR(core.rows.at(place)[j], weights[j], 1e-5) << variant.name();
  }
}

}  // namespace
}  // namespace lacuna::contract
