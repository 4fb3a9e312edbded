#include <algorithm>
#include <limits>

#include "attention_calls.h"
#include "base/random.h"

// The contract of attention() itself, for every type of the registry, every pattern and every engine, against the reference in double.
namespace lacuna::contract {
namespace {

INSTANTIATE_FOR_EACH_TYPE(AttentionCore);

TEST_P(AttentionCore, EqualsTheReferenceForEveryTypeAndPattern) {
  const Inputs inputs({5, 1, 0, 17, 33}, {5, 1, 0, 17, 33}, 2, 20);
  for (const Variant& variant : variants())
    for (const std::string& pattern : all_patterns())
      for (const bool causal : {false, true}) compare_with_reference(inputs, variant, pattern, causal);
}

TEST_P(AttentionCore, EqualsTheReferenceBetweenSentencesOfOtherLengths) {
  const Inputs inputs({3, 1, 20, 4}, {15, 6, 1, 40}, 2, 64);
  for (const Variant& variant : variants()) compare_with_reference(inputs, variant, "full", false);
}

TEST_P(AttentionCore, EqualsTheReferenceOnLongRowsThatAreMostlyZero) {
  const Inputs inputs({150}, {150}, 1, 8, /*spread=*/6);
  for (const Variant& variant : variants())
    for (const char* pattern : {"full", "{type: atrous, stride: 2}", "{type: fixed, block: 75}"})
      compare_with_reference(inputs, variant, pattern, true, 0.2);
}

TEST_P(AttentionCore, EqualsTheReferenceOnLongSentences) {
  const Inputs inputs({130, 70, 17}, {90, 130, 64}, 2, 40);
  for (const char* pattern : {"full", "{type: local, window: 20}", "{type: strided, window: 3, stride: 2}"})
    for (const bool causal : {false, true})
      for (const Variant& variant : variants()) compare_with_reference(inputs, variant, pattern, causal, 0.2);
}

TEST_P(AttentionCore, EqualsTheReferenceOnMoreKeysThanTheCacheHolds) {
  const Inputs inputs({1100, 70}, {1100, 1030}, 1, 8);
  for (const Variant& variant : variants()) compare_with_reference(inputs, variant, "full", false, 0.1);
}

// Types that search their rows for a threshold look longest where one score is far from all others.
TEST_P(AttentionCore, EqualsTheReferenceWhereOneScoreIsFarFromAllOthers) {
  Inputs inputs({70, 40}, {300, 1100}, 1, 8);
  inputs.q.select(2, 0).fill_(2);
  for (const int64_t key : {7, 500}) inputs.k[key].select(1, 0).fill_(-1e4);  // without weight: its gradient would be all rounding
  for (const Variant& variant : variants())
    if (variant.entry->info.rows_sum_to_one) compare_with_reference(inputs, variant, "full", false);
}

// Heads wider than the vectors that go together, and no multiple of them.
TEST_P(AttentionCore, EqualsTheReferenceWhereFewWeightsOfAWideHeadAreNotZero) {
  const Inputs inputs({140, 66}, {140, 200}, 1, 72);
  for (const Variant& variant : variants())
    for (const double dropout : {0.0, 0.2}) compare_with_reference(inputs, variant, "full", false, dropout);
}

// Only the reference takes them.
TEST(AttentionCore, TakesValuesThatAreNotAsWideAsKeys) {
  for (const int64_t width : {3, 24}) {
    Inputs inputs({70, 5}, {90, 8}, 2, 16);
    inputs.v = at::randn({inputs.v.size(0), 2, width}, at::kDouble);
    inputs.context_gradient = at::randn({inputs.q.size(0), 2, width}, at::kDouble);
    compare_with_reference(inputs, variant("softmax", ""), "full", false);
  }
}

// A diverging model must be seen: a row of NaN neither hangs nor turns into nothing.
TEST_P(AttentionCore, HandsOnWhatIsNotANumber) {
  Inputs inputs({70}, {300}, 1, 16);
  inputs.q[3].fill_(std::numeric_limits<double>::quiet_NaN());
  for (const Variant& variant : variants())
    for (const Engine engine : call_engines()) {
      SCOPED_TRACE(variant.name() + " on " + name_of(engine));
      use(engine);
      const Tensor context = attention(inputs.call(type_of(variant), dtype_of(engine)), training()).cpu();
      EXPECT_FALSE(context[3].isfinite().any().item<bool>());
      EXPECT_TRUE(context[4].isfinite().all().item<bool>());
    }
}

TEST_P(AttentionCore, HandsOnALearnedNumberThatIsNone) {
  const Inputs inputs({70}, {70}, 1, 16);
  for (const Variant& variant : variants())
    for (const Engine engine : call_engines()) {
      SCOPED_TRACE(variant.name() + " on " + name_of(engine));
      use(engine);
      const auto type = type_of(variant);
      AttentionCall call = inputs.call(type, dtype_of(engine));
      if (call.numbers.empty()) continue;
      for (Tensor& number : call.numbers) number = at::full_like(number, std::numeric_limits<double>::quiet_NaN());
      EXPECT_FALSE(attention(call, {}).isfinite().any().item<bool>());
    }
}

TEST_P(AttentionCore, EqualsTheReferenceWithAPatternForEachHead) {
  const Inputs inputs({9, 20}, {9, 20}, 6, 8);
  const char* const heads =
      "{heads: [full, {type: local, window: 1}, {type: local, window: 4}, {type: atrous, stride: 3}, {type: strided, window: 1}, "
      "{type: fixed, block: 4}]}";
  for (const Variant& variant : variants())
    for (const bool causal : {false, true}) compare_with_reference(inputs, variant, heads, causal);
}

/// The gradients of q, k and v side by side, [T, 3, H, d], with so many of them packed.
Tensor gradients_with(int64_t packed_parts, const Inputs& inputs, const std::shared_ptr<const AttentionType>& type, Engine engine) {
  AttentionCall call = inputs.call(type, dtype_of(engine), /*causal=*/true);
  std::vector<Tensor> parts = {call.q, call.k, call.v};
  if (packed_parts > 0) {
    const std::vector<Tensor> packed(parts.end() - packed_parts, parts.end());
    call.packed = at::stack(packed, 1).detach().requires_grad_();
    const std::vector<Tensor> views = call.packed.unbind(1);
    if (packed_parts == 3) call.q = views.front();
    call.k = views[views.size() - 2];
    call.v = views.back();
  }
  const Tensor context = attention(call, training());
  context.backward(inputs.context_gradient.to(context.options()));
  if (packed_parts == 3) return call.packed.grad();
  if (packed_parts == 2) return at::cat({call.q.grad().unsqueeze(1), call.packed.grad()}, 1);
  return at::stack({call.q.grad(), call.k.grad(), call.v.grad()}, 1);
}

TEST_P(AttentionCore, PackingChangesNoBit) {
  const Inputs inputs({5, 1, 0, 70}, {5, 1, 0, 70}, 2, 20);
  for (const Variant& variant : variants()) {
    const auto type = type_of(variant, "full", 2);
    for (const Engine engine : call_engines()) {
      use(engine);
      const Tensor expected = gradients_with(0, inputs, type, engine);
      for (const int64_t parts : {2, 3}) EXPECT_TRUE(gradients_with(parts, inputs, type, engine).equal(expected)) << variant.name();
    }
  }
}

TEST(AttentionCore, RefusesPartsThatAreNotOfWhatIsPacked) {
  const Inputs inputs({4}, {4}, 2, 8);
  const auto type = type_of(all_variants().front(), "full", 2);
  use(Engine::kPlainDouble);
  AttentionCall call = inputs.call(type, at::kDouble);
  call.packed = at::stack({call.k, call.v}, 1).detach();
  EXPECT_THROW(attention(call, training()), ShapeError);  // k and v are copies
  call.packed = call.k;
  EXPECT_THROW(attention(call, training()), ShapeError);  // not [Tk, 2 or 3, H, d]
}

TEST_P(AttentionCore, EqualsTheReferenceUnderDropout) {
  const Inputs inputs({5, 1, 17}, {5, 1, 17}, 2, 16);
  for (const Variant& variant : variants())
    for (const std::string& pattern : all_patterns()) compare_with_reference(inputs, variant, pattern, true, 0.3);
}

TEST_P(AttentionCore, EqualsTheReferenceWhereSentencesShareKeys) {
  Inputs inputs({20, 30, 9, 1}, {0, 0, 0, 50}, 2, 20);
  KeyRange keys;
  keys.begin = {0, 2, 0, 40};
  keys.count = {20, 30, 50, 10};
  inputs.keys = std::make_shared<KeyRange>(keys);
  for (const Variant& variant : variants()) compare_with_reference(inputs, variant, "full", false, 0.2);
}

TEST_P(AttentionCore, HasTheGradientOfFiniteDifferences) {
  const Inputs inputs({3, 4}, {4, 3}, 2, 3);
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name());
    const auto type = type_of(variant, "full", 2);
    const AttentionCall call = inputs.call(type, at::kDouble);
    const Outcome outcome = outcome_of(call, training(), inputs.context_gradient);
    const at::NoGradGuard no_gradients;
    const std::vector<Tensor> leaves = leaves_of(call);
    for (size_t n = 0; n < leaves.size(); ++n) {
      const Tensor gradient = outcome.all[n + 1].contiguous();
      for (int64_t i = 0; i < leaves[n].numel(); ++i) {
        constexpr double kStep = 1e-6;
        double* element = leaves[n].data_ptr<double>() + i;
        const double before = *element;
        const auto loss_at = [&](double value) {
          *element = value;
          return loss_of(call, training(), inputs.context_gradient).item<double>();
        };
        const double difference = (loss_at(before + kStep) - loss_at(before - kStep)) / (2 * kStep);
        *element = before;
        ASSERT_NEAR(gradient.data_ptr<double>()[i], difference, kFiniteDifference * 10) << "leaf " << n << ", element " << i;
      }
    }
  }
}

TEST_P(AttentionCore, GivesContextZeroToAQueryThatSeesNoKey) {
  const Inputs inputs({2, 3}, {0, 4}, 2, 8);
  for (const Variant& variant : variants()) {
    for (const Engine engine : call_engines()) {
      use(engine);
      const auto type = type_of(variant);
      const Outcome outcome = outcome_of(inputs.call(type, dtype_of(engine)), training(), inputs.context_gradient);
      EXPECT_EQ(outcome.context().narrow(0, 0, 2).abs().max().item<double>(), 0) << variant.name();
      EXPECT_EQ(outcome.q().narrow(0, 0, 2).abs().max().item<double>(), 0) << variant.name();
    }
  }
}

TEST_P(AttentionCore, GivesKeysOutsideThePatternNoWeightAndNoGradient) {
  Inputs inputs({12}, {12}, 1, 8);
  constexpr int32_t kQuery = 4;
  const Tensor kept = inputs.context_gradient[kQuery].clone();
  inputs.context_gradient.zero_();
  inputs.context_gradient[kQuery].copy_(kept);  // only this query counts
  for (const Variant& variant : variants()) {
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
        EXPECT_TRUE(at::equal(found.context()[kQuery], changed.context()[kQuery]));
        EXPECT_EQ(found.k().index_select(0, index).abs().sum().item<double>(), 0);
        EXPECT_EQ(found.v().index_select(0, index).abs().sum().item<double>(), 0);
      }
    }
  }
}

TEST(AttentionCore, GivesTheKeysOfASentenceWithoutQueriesNoGradient) {
  const Inputs inputs({3, 0, 70}, {5, 4, 70}, 2, 16);
  const auto type = type_of(variant("softmax", ""), "full");
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
    SCOPED_TRACE(at::toString(dtype));
    std::vector<Tensor> dirt;  // what memory may hold that gradients are made in
    for (int i = 0; i < 8; ++i) dirt.push_back(at::full(inputs.k.sizes(), std::numeric_limits<double>::quiet_NaN(), dtype));
    dirt.clear();
    const Outcome outcome = outcome_of(inputs.call(type, dtype), training(), inputs.context_gradient);
    for (const Tensor& gradient : {outcome.k(), outcome.v()}) {
      EXPECT_TRUE(gradient.isfinite().all().item<bool>());
      EXPECT_EQ(gradient.narrow(0, 5, 4).abs().sum().item<double>(), 0);
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
          EXPECT_TRUE(outcome.context()[i].isfinite().all().item<bool>()) << "query " << i;
          EXPECT_TRUE(outcome.q()[i].isfinite().all().item<bool>()) << "query " << i;
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
    compare_with_reference(inputs, variant("softmax", ""), patterns, causal, dropout);
    const Variant& other = variants[static_cast<size_t>(chance.below(static_cast<int>(variants.size())))];
    // Not in float: among so many rows, some score lies within its rounding of a threshold.
    compare_with_reference(inputs, other, patterns, causal, dropout, {Engine::kPlainDouble});
  }
}

}  // namespace
}  // namespace lacuna::contract
