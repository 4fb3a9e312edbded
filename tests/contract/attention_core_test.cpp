#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>

#include "attention/attention.h"
#include "attention/row_numbers.h"
#include "attention_contract.h"
#include "base/random.h"

// The contract of attention() itself, for every type of the registry, every pattern and every engine, against the reference in double.
namespace lacuna::contract {
namespace {

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
    call.first_position = first_position;
    call.causal = causal;
    call.scale = 1 / std::sqrt(static_cast<double>(q.size(2)));
    call.type = type.get();
    if (const auto module = make_row_numbers(*type, q.size(1), 4))
      for (const RowNumber& number : module->forward(at::zeros({q.size(0), 4}))) call.numbers.push_back(leaf(number.values, dtype));
    return call;
  }

  static Tensor leaf(const Tensor& values, at::ScalarType dtype) {
    const at::Device device = dtype == at::kDouble ? at::kCPU : device_in_use();
    return values.to(device, dtype).clone().detach().requires_grad_();
  }

  RaggedShapePtr queries, keys;
  std::vector<int32_t> first_position;
  Tensor q, k, v, context_gradient;
};

struct Outcome {
  Tensor context, q, k, v;  // all but the first are gradients
  std::vector<Tensor> numbers = {};
  std::vector<Tensor> all() const { return {context, q, k, v}; }
};

Outcome outcome_of(const AttentionCall& call, const ForwardContext& context, const Tensor& gradient, bool reference = false) {
  const Tensor result = reference ? attention_reference(call, context) : attention(call, context);
  result.backward(gradient.to(result.options()));
  Outcome outcome = {result.detach().cpu(), call.q.grad().cpu(), call.k.grad().cpu(), call.v.grad().cpu()};
  for (const Tensor& number : call.numbers) outcome.numbers.push_back(number.grad().cpu());
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
                            const ForwardContext& context, double dropout = 0, const std::vector<Engine>& some_engines = call_engines()) {
  const auto type = type_of(variant, pattern, inputs.q.size(1));
  AttentionCall exact = inputs.call(type, at::kDouble, causal);
  exact.dropout = dropout;
  const Outcome expected = outcome_of(exact, context, inputs.context_gradient, /*reference=*/true);
  for (const Engine engine : some_engines) {
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
    for (const std::string& pattern : all_patterns())
      for (const bool causal : {false, true}) compare_with_reference(inputs, variant, pattern, causal, training());
}

TEST(AttentionCore, EqualsTheReferenceBetweenSentencesOfOtherLengths) {
  const Inputs inputs({3, 1, 20, 4}, {15, 6, 1, 40}, 2, 64);
  for (const Variant& variant : all_variants()) compare_with_reference(inputs, variant, "full", false, training());
}

TEST(AttentionCore, EqualsTheReferenceOnLongRowsThatAreMostlyZero) {
  const Inputs inputs({150}, {150}, 1, 8, /*spread=*/6);
  for (const Variant& variant : all_variants())
    for (const char* pattern : {"full", "{type: atrous, stride: 2}", "{type: fixed, block: 75}"})
      compare_with_reference(inputs, variant, pattern, true, training(), 0.2);
}

TEST(AttentionCore, EqualsTheReferenceOnLongSentences) {
  const Inputs inputs({130, 70, 17}, {90, 130, 64}, 2, 40);
  for (const char* pattern : {"full", "{type: local, window: 20}", "{type: strided, window: 3, stride: 2}"})
    for (const bool causal : {false, true})
      for (const char* type : {"softmax", "rela"}) compare_with_reference(inputs, variant(type, ""), pattern, causal, training(), 0.2);
}

TEST(AttentionCore, EqualsTheReferenceWithAPatternForEachHead) {
  const Inputs inputs({9, 20}, {9, 20}, 6, 8);
  const char* const heads =
      "{heads: [full, {type: local, window: 1}, {type: local, window: 4}, {type: atrous, stride: 3}, {type: strided, window: 1}, "
      "{type: fixed, block: 4}]}";
  for (const Variant& variant : all_variants())
    for (const bool causal : {false, true}) compare_with_reference(inputs, variant, heads, causal, training());
}

TEST(AttentionCore, EqualsTheReferenceUnderDropout) {
  const Inputs inputs({5, 1, 17}, {5, 1, 17}, 2, 16);
  for (const Variant& variant : all_variants())
    for (const std::string& pattern : all_patterns()) compare_with_reference(inputs, variant, pattern, true, training(), 0.3);
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
    for (const Engine engine : call_engines()) {
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
  constexpr int32_t kQuery = 4;
  const Tensor kept = inputs.context_gradient[kQuery].clone();
  inputs.context_gradient.zero_();
  inputs.context_gradient[kQuery].copy_(kept);  // only this query counts
  for (const Variant& variant : all_variants()) {
    for (const std::string& pattern : all_patterns()) {
      const auto type = type_of(variant, pattern);
      Inputs other = inputs;
      other.k = inputs.k.clone();
      other.v = inputs.v.clone();
      std::vector<int64_t> unseen;
      for (int32_t j = 0; j < 12; ++j)
        if (!sees(*type, 0, kQuery, j)) unseen.push_back(j);
      const Tensor index = at::tensor(unseen, at::kLong);
      other.k.index_fill_(0, index, 1e3);
      other.v.index_fill_(0, index, 1e3);
      for (const Engine engine : call_engines()) {
        SCOPED_TRACE(variant.name() + ", " + pattern + " on " + name_of(engine));
        use(engine);
        const Outcome found = outcome_of(inputs.call(type, dtype_of(engine)), training(), inputs.context_gradient);
        const Outcome changed = outcome_of(other.call(type, dtype_of(engine)), training(), inputs.context_gradient);
        EXPECT_TRUE(at::equal(found.context[kQuery], changed.context[kQuery]));
        EXPECT_EQ(found.k.index_select(0, index).abs().sum().item<double>(), 0);
        EXPECT_EQ(found.v.index_select(0, index).abs().sum().item<double>(), 0);
      }
    }
  }
}

TEST(AttentionCore, DoesNotTouchKeysThatNoQueryOfAGroupSees) {
  Inputs inputs({24}, {24}, 1, 8);
  const double not_a_number = std::numeric_limits<double>::quiet_NaN();
  for (const std::string pattern : {"{type: atrous, stride: 3}", "{type: fixed, block: 6}"}) {
    const auto type = type_of(variant("softmax", ""), pattern);
    Inputs spoilt = inputs;
    spoilt.k = inputs.k.clone();
    spoilt.v = inputs.v.clone();
    for (int32_t j = 0; j < 24; ++j)
      if (!sees(*type, 0, 0, j)) {
        spoilt.k[j].fill_(not_a_number);
        spoilt.v[j].fill_(not_a_number);
      }
    for (const Engine engine : call_engines()) {
      SCOPED_TRACE(pattern + " on " + name_of(engine));
      use(engine);
      const Outcome outcome = outcome_of(spoilt.call(type, dtype_of(engine)), training(), inputs.context_gradient);
      for (int32_t i = 0; i < 24; ++i)
        if (type->pattern(0).group(i) == type->pattern(0).group(0)) {
          EXPECT_TRUE(outcome.context[i].isfinite().all().item<bool>()) << "query " << i;
          EXPECT_TRUE(outcome.q[i].isfinite().all().item<bool>()) << "query " << i;
        }
    }
  }
}

TEST(AttentionCore, DoesNotChangeABitWithWhatElseIsInTheBatch) {
  const Inputs together({4, 1, 19, 7}, {6, 30, 19, 7}, 2, 24);
  for (const Variant& variant : all_variants()) {
    for (const Engine engine : call_engines()) {
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
        for (size_t n = 0; n < call.numbers.size(); ++n)
          if (call.numbers[n].dim() == 2) one.numbers[n] = call.numbers[n].detach().narrow(0, first, queries).requires_grad_();
        expect_same_bits(outcome_of(one, training(), together.context_gradient.narrow(0, first, queries)),
                         {all.context.narrow(0, first, queries), all.q.narrow(0, first, queries), all.k.narrow(0, first_key, keys),
                          all.v.narrow(0, first_key, keys)});
      }
    }
  }
}

TEST(AttentionCore, DoesNotChangeABitWithWhatElseIsInTheBatchWhateverThePattern) {
  const Inputs together({18, 1, 33}, {18, 1, 33}, 2, 24);
  for (const std::string& pattern : all_patterns()) {
    const auto type = type_of(variant("softmax", ""), pattern, 2);
    for (const Engine engine : call_engines()) {
      SCOPED_TRACE(pattern + " on " + name_of(engine));
      use(engine);
      const Tensor all = attention(together.call(type, dtype_of(engine), true), training());
      for (int64_t b = 0; b < 3; ++b) {
        const int64_t first = together.queries->begin(b), length = together.queries->length(b);
        Inputs alone = together;
        alone.queries = alone.keys = std::make_shared<RaggedShape>(RaggedShape::of_lengths({static_cast<int32_t>(length)}));
        for (Tensor* rows : {&alone.q, &alone.k, &alone.v}) *rows = rows->narrow(0, first, length);
        EXPECT_TRUE(at::equal(attention(alone.call(type, dtype_of(engine), true), training()), all.narrow(0, first, length)));
      }
    }
  }
}

TEST(AttentionCore, DoesNotChangeABitWithTheNumberOfThreads) {
  const Inputs inputs({9, 30, 2, 14}, {9, 30, 2, 14}, 2, 16);
  const int before = at::get_num_threads();
  for (const Variant& variant : all_variants()) {
    for (const std::string& pattern : all_patterns()) {
      const auto type = type_of(variant, pattern, 2);
      at::set_num_threads(1);
      const Outcome one = outcome_of(inputs.call(type, at::kFloat, true), training(), inputs.context_gradient);
      at::set_num_threads(3);
      const Outcome three = outcome_of(inputs.call(type, at::kFloat, true), training(), inputs.context_gradient);
      at::set_num_threads(before);
      SCOPED_TRACE(variant.name() + ", " + pattern);
      expect_same_bits(three, one);
      for (size_t i = 0; i < one.numbers.size(); ++i) EXPECT_TRUE(at::equal(three.numbers[i], one.numbers[i])) << "number " << i;
    }
  }
}

TEST(AttentionCore, ReadsKeysThroughSlotsAsIfTheyWereGathered) {
  const Inputs inputs({1, 1, 1}, {7, 7, 7}, 2, 24);
  const std::vector<int32_t> slots = {20, 3, 3, 5, 11, 0, 8, /**/ 1, 2, /**/ 13, 19, 4, 6};
  const std::vector<int32_t> begin = {0, 7, 9}, count = {7, 2, 4};
  for (const Variant& variant : all_variants()) {
    for (const Engine engine : call_engines()) {
      use(engine);
      const auto type = type_of(variant);
      AttentionCall by_slots = inputs.call(type, dtype_of(engine)), gathered = by_slots;
      KeyRange range;
      range.begin = begin;
      range.count = count;
      gathered.keys = std::make_shared<KeyRange>(range);
      range.slots = slots;
      by_slots.keys = std::make_shared<KeyRange>(range);
      const Tensor index = at::tensor(std::vector<int64_t>(slots.begin(), slots.end()), at::kLong).to(by_slots.k.device());
      gathered.k = by_slots.k.index_select(0, index);
      gathered.v = by_slots.v.index_select(0, index);
      EXPECT_TRUE(at::equal(attention(by_slots, {}), attention(gathered, {}))) << variant.name();
    }
  }
}

TEST(AttentionCore, GivesTheLastQueryAloneWhatItGivesItAmongAll) {
  const Inputs inputs({11}, {11}, 2, 16);
  for (const Variant& variant : all_variants()) {
    for (const std::string& pattern : all_patterns()) {
      for (const Engine engine : call_engines()) {
        use(engine);
        const auto type = type_of(variant, pattern);
        const AttentionCall all = inputs.call(type, dtype_of(engine), /*causal=*/true);
        AttentionCall last = all;
        last.q = all.q.narrow(0, 10, 1);
        last.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({1}));
        last.first_position = {10};
        for (Tensor& number : last.numbers)
          if (number.dim() == 2) number = number.narrow(0, 10, 1);
        const Tensor difference = (attention(last, {})[0] - attention(all, {})[10]).abs();
        EXPECT_LT(difference.max().item<double>(), is_double(engine) ? kDoubleContext : kFloatContext) << variant.name();
      }
    }
  }
}

TEST(AttentionCore, WhereRowsAreAlikeGivesAQueryTheSameBitsAloneAndAmongOthers) {
  for (const int32_t keys : {9, 100}) {  // short rows, and rows long enough that zeros are left out
    const Inputs inputs({5}, {keys}, 2, 24, /*spread=*/6);
    for (const Variant& variant : all_variants()) {
      for (const Engine engine : call_engines()) {
        use(engine);
        const auto type = type_of(variant, "full", 2);
        AttentionCall all = inputs.call(type, dtype_of(engine));
        all.rows_alike = true;
        const Tensor together = attention(all, {});
        for (int64_t i = 0; i < 5; ++i) {
          AttentionCall one = all;
          one.q = all.q.narrow(0, i, 1);
          one.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({1}));
          one.first_position = {static_cast<int32_t>(i)};
          for (Tensor& number : one.numbers)
            if (number.dim() == 2) number = number.narrow(0, i, 1);
          EXPECT_TRUE(at::equal(attention(one, {})[0], together[i]))
              << variant.name() << " on " << name_of(engine) << ", " << keys << " keys";
        }
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

/// Keeps every row it sees, weights by key.
class Rows : public AttentionProbe {
 public:
  void see(int layer, AttentionSite site, int head, int64_t sentence, int64_t query, std::span<const float> weights,
           std::span<const int32_t> key_positions) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(layer, 2);
    EXPECT_EQ(site, AttentionSite::kCross);
    ASSERT_EQ(weights.size(), key_positions.size());
    auto& row = rows[{head, sentence, query}];
    EXPECT_TRUE(row.empty()) << "seen twice";
    for (size_t j = 0; j < weights.size(); ++j) row[key_positions[j]] = weights[j];
  }
  std::map<std::tuple<int, int64_t, int64_t>, std::map<int32_t, float>> rows;

 private:
  std::mutex mutex_;
};

void expect_near(const Rows& found, const Rows& expected) {
  ASSERT_EQ(found.rows.size(), expected.rows.size());
  for (const auto& [place, weights] : expected.rows) {
    const auto& row = found.rows.at(place);
    ASSERT_EQ(row.size(), weights.size());
    for (const auto& [key, weight] : weights) ASSERT_NEAR(row.at(key), weight, 1e-5) << "key " << key;
  }
}

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
    SCOPED_TRACE(variant.name());
    ASSERT_EQ(core.rows.size(), 12u);
    expect_near(core, reference);
  }
}

TEST(AttentionCore, ShowsAProbeTheKeysOfThePattern) {
  Inputs inputs({30, 17}, {33, 17}, 2, 8);
  inputs.first_position = {3, 0};
  for (const std::string& pattern : all_patterns()) {
    SCOPED_TRACE(pattern);
    Rows core, reference;
    const auto type = type_of(variant("softmax", ""), pattern, 2);
    AttentionCall call = inputs.call(type, at::kFloat, /*causal=*/true);
    call.layer = 2;
    call.site = AttentionSite::kCross;
    ForwardContext context = training();
    context.probe = &core;
    attention(call, context);
    context.probe = &reference;
    attention_reference(call, context);
    expect_near(core, reference);
    ASSERT_EQ(core.rows.size(), 94u);
    for (const auto& [place, row] : core.rows) {
      const auto query = static_cast<int32_t>(std::get<2>(place));
      for (int32_t j = 0; j < 33; ++j)
        EXPECT_EQ(row.contains(j), j <= query && sees(*type, std::get<0>(place), query, j)) << "query " << query << ", key " << j;
    }
  }
}

Row numbers_in_bf16(const Variant& variant) {
  Row numbers;
  for (const double number : variant.numbers) numbers.push_back(to_bf16(number));
  return numbers;
}

// Weights are worked out in float; a GPU rounds them to bf16 afterwards.
TEST(AttentionCore, GivesTensorsOfBf16TheWeightsOfTheirScoresInDouble) {
  constexpr double kTolerance = 1e-5;  // as kFloatContext
  for (const Variant& variant : all_variants()) {
    const auto type = type_of(variant);
    for (const int n : {1, 2, 4000}) {
      for (const Row& scores : hard_bf16_rows(n)) {
        SCOPED_TRACE(variant.name() + ", " + std::to_string(n) + " keys");
        Inputs inputs({1}, {n}, 1, 1);
        inputs.q.fill_(1);
        inputs.k.copy_(at::tensor(scores, at::kDouble).view({n, 1, 1}));
        AttentionCall call = inputs.call(type, at::kBFloat16);
        call.layer = 2;
        call.site = AttentionSite::kCross;
        Rows seen;
        ForwardContext context = training();
        context.probe = &seen;
        const Outcome outcome = outcome_of(call, context, inputs.context_gradient);
        for (const Tensor& one : outcome.all()) EXPECT_TRUE(one.isfinite().all().item<bool>());
        if (variant.entry->info.uses_positions) continue;  // weights_of puts the query elsewhere
        const Row expected = weights_of(variant, Engine::kPlainDouble, scores, numbers_in_bf16(variant));
        const auto& weights = seen.rows.begin()->second;
        for (int j = 0; j < n; ++j) {
          const double exact = expected[static_cast<size_t>(j)];
          ASSERT_NEAR(weights.at(j), exact, kTolerance * std::max(1.0, std::abs(exact))) << "key " << j;
          if (exact == 0) {
            ASSERT_EQ(weights.at(j), 0) << "key " << j;
          }
        }
      }
    }
  }
}

/// Calls drawn by chance, the same for the same seed.
class Chance {
 public:
  explicit Chance(uint64_t seed) : random_(seed) {}

  /// 0 to end - 1.
  int below(int end) { return static_cast<int>(random_.next_below(static_cast<uint64_t>(end))); }

  std::string pattern() {
    const auto drawn = [this](int from, int end) { return std::to_string(from + below(end - from)); };
    switch (below(5)) {
      case 0:
        return "full";
      case 1:
        return "{type: local, window: " + drawn(0, 20) + "}";
      case 2:
        return "{type: atrous, stride: " + drawn(1, 20) + "}";
      case 3:
        return "{type: strided, window: " + drawn(0, 12) + ", stride: " + drawn(1, 20) + "}";
      default:
        const int block = 1 + below(20);
        return "{type: fixed, block: " + std::to_string(block) + ", summary: " + drawn(0, block + 1) + "}";
    }
  }

  std::string patterns(int heads) {
    std::string list = pattern();
    for (int head = 1; head < heads; ++head) list += ", " + pattern();
    return "{heads: [" + list + "]}";
  }

  /// 1 to 4 sentences; the queries are the last of their tokens.
  Inputs inputs(int heads) {
    std::vector<int32_t> queries, keys, first_position;
    for (int b = 1 + below(4); b > 0; --b) {
      keys.push_back(below(4) == 0 ? below(3) : below(90));
      first_position.push_back(below(2) == 0 ? 0 : below(keys.back() + 1));
      queries.push_back(keys.back() - first_position.back());
    }
    Inputs drawn(queries, keys, heads, 1 + below(40));
    drawn.first_position = first_position;
    return drawn;
  }

 private:
  RandomStream random_;
};

TEST(AttentionCore, EqualsTheReferenceOnShapesDrawnByChance) {
  const std::vector<Variant> variants = all_variants();
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chance chance(seed);
    const int heads = 1 + chance.below(3);
    const std::string patterns = chance.patterns(heads);
    const Inputs inputs = chance.inputs(heads);
    const bool causal = chance.below(2) == 0;
    const double dropout = chance.below(2) == 0 ? 0 : 0.3;
    compare_with_reference(inputs, variant("softmax", ""), patterns, causal, training(), dropout);
    const Variant& other = variants[static_cast<size_t>(chance.below(static_cast<int>(variants.size())))];
    // Not in float: among so many rows, some score lies within its rounding of a threshold.
    compare_with_reference(inputs, other, patterns, causal, training(), dropout, {Engine::kPlainDouble});
  }
}

}  // namespace
}  // namespace lacuna::contract
