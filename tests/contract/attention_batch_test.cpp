#include "attention_calls.h"

// What else a call holds, and how it is computed, changes nothing for a query: for every type, every pattern and every engine.
namespace lacuna::contract {
namespace {

/// Returns the rows of tensor i of a call's outcome that are sentence b's.
Tensor of_sentence(const Inputs& inputs, const Outcome& all, size_t i, int64_t b) {
  const bool is_of_keys = i == 2 || i == 3;  // k and v
  const auto at = static_cast<size_t>(b);
  return is_of_keys ? all.all[i].narrow(0, inputs.keys->begin[at], inputs.keys->count[at])
                    : all.all[i].narrow(0, inputs.queries->begin(b), inputs.queries->length(b));
}

TEST_P(AttentionCore, DoesNotChangeABitWithWhatElseIsInTheBatch) {
  const Inputs together({4, 1, 19, 7}, {6, 30, 19, 7}, 2, 24);
  for (const Variant& variant : variants()) {
    for (const Engine engine : call_engines()) {
      SCOPED_TRACE(variant.name() + " on " + name_of(engine));
      use(engine);
      const auto type = type_of(variant, "full", 2);
      const auto outcome = [](AttentionCall& call, const Tensor& gradient) {
        call.dropout = 0.1;
        const Tensor context = attention(call, training());
        context.backward(gradient.to(context.options()));
        return Outcome{{context.detach().cpu(), call.q.grad().cpu(), call.k.grad().cpu(), call.v.grad().cpu()}};
      };
      AttentionCall call = together.call(type, dtype_of(engine));
      const Outcome all = outcome(call, together.context_gradient);
      for (int64_t b = 0; b < 4; ++b) {
        const Inputs alone = together.sentence(b);
        AttentionCall one = alone.call(type, dtype_of(engine));
        take_numbers(one, call, together.queries->begin(b));
        const Outcome found = outcome(one, alone.context_gradient);
        for (size_t i = 0; i < found.all.size(); ++i)
          EXPECT_TRUE(at::equal(found.all[i], of_sentence(together, all, i, b))) << "tensor " << i << " of sentence " << b;
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
        const Tensor one = attention(together.sentence(b).call(type, dtype_of(engine), true), training());
        EXPECT_TRUE(at::equal(one, all.narrow(0, together.queries->begin(b), one.size(0))));
      }
    }
  }
}

void expect_the_same_bits_on_any_number_of_threads(const Inputs& inputs, const Variant& variant, const std::string& pattern, bool causal,
                                                   at::ScalarType dtype = at::kFloat) {
  use(cpu_engines().back());
  const int before = at::get_num_threads();
  const auto type = type_of(variant, pattern, 2);
  const auto outcome = [&](int threads) {
    at::set_num_threads(threads);
    return outcome_of(inputs.call(type, dtype, causal), training(), inputs.context_gradient);
  };
  SCOPED_TRACE(variant.name() + ", " + pattern);
  const Outcome one = outcome(1), three = outcome(3);
  expect_same_bits(three, one);
  at::set_num_threads(before);
}

TEST_P(AttentionCore, DoesNotChangeABitWithTheNumberOfThreads) {
  const Inputs inputs({9, 30, 2, 14}, {9, 30, 2, 14}, 2, 16);
  for (const Variant& variant : variants())
    for (const std::string& pattern : all_patterns()) expect_the_same_bits_on_any_number_of_threads(inputs, variant, pattern, true);
}

// All sentences add to the gradients of the same keys, in an order that must stay the same.
TEST_P(AttentionCore, DoesNotChangeABitWithTheNumberOfThreadsWhereSentencesShareKeys) {
  constexpr size_t kSentences = 40;
  Inputs inputs(std::vector<int32_t>(kSentences, 12), {80}, 2, 16);
  KeyRange keys;
  keys.begin.assign(kSentences, 0);
  keys.count.assign(kSentences, 78);
  for (size_t b = 1; b < kSentences; b += 3) keys.begin[b] = 2;
  inputs.keys = std::make_shared<KeyRange>(keys);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})  // of bf16, the core works on floats
    for (const Variant& variant : variants()) expect_the_same_bits_on_any_number_of_threads(inputs, variant, "full", false, dtype);
}

/// Returns each variant with each pattern, and with a pattern for each of two heads.
std::vector<std::pair<Variant, std::string>> with_patterns(const std::vector<Variant>& variants) {
  std::vector<std::string> patterns = all_patterns();
  patterns.emplace_back("{heads: [full, {type: local, window: 1}]}");
  std::vector<std::pair<Variant, std::string>> pairs;
  for (const Variant& variant : variants)
    for (const std::string& pattern : patterns) pairs.emplace_back(variant, pattern);
  return pairs;
}

TEST_P(AttentionCore, ReadsKeysThroughSlotsAsIfTheyWereGathered) {
  constexpr size_t kQueries = 11;  // with their heads more than become weights together
  const Inputs inputs(std::vector<int32_t>(kQueries, 1), std::vector<int32_t>(kQueries, 2), 2, 24);
  const std::vector<int32_t> slots = {20, 3, 3, 5, 11, 0, 8, /**/ 1, 2, /**/ 13, 19, 4, 6};
  const std::vector<int32_t> begin = {0, 7, 9, 9, 0, 2, 7, 1, 10, 5, 0}, count = {7, 2, 4, 1, 3, 5, 2, 6, 3, 2, 7};
  for (const auto& [variant, pattern] : with_patterns(variants())) {
    for (const Engine engine : call_engines()) {
      use(engine);
      const auto type = type_of(variant, pattern, 2);
      AttentionCall by_slots = inputs.call(type, dtype_of(engine), /*causal=*/true);
      by_slots.first_position.clear();
      for (const int32_t keys : count) by_slots.first_position.push_back(keys - 1);
      AttentionCall gathered = by_slots;
      KeyRange range;
      range.begin = begin;
      range.count = count;
      gathered.keys = std::make_shared<KeyRange>(range);
      range.slots = slots;
      by_slots.keys = std::make_shared<KeyRange>(range);
      const Tensor index = at::tensor(std::vector<int64_t>(slots.begin(), slots.end()), at::kLong).to(by_slots.k.device());
      for (Tensor* rows : {&gathered.k, &gathered.v}) *rows = rows->index_select(0, index);
      EXPECT_TRUE(at::equal(attention(by_slots, {}), attention(gathered, {}))) << variant.name() << ", " << pattern;
    }
  }
}

/// Returns a call with one sentence, cut down to query i alone.
AttentionCall of_query(const AttentionCall& all, int64_t i) {
  AttentionCall one = all;
  one.q = all.q.narrow(0, i, 1);
  one.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({1}));
  one.first_position = {static_cast<int32_t>(i)};
  for (Tensor& number : one.numbers)
    if (number.dim() == 2) number = number.narrow(0, i, 1);
  return one;
}

TEST_P(AttentionCore, GivesTheLastQueryAloneWhatItGivesItAmongAll) {
  const Inputs inputs({11}, {11}, 2, 16);
  for (const Variant& variant : variants()) {
    for (const std::string& pattern : all_patterns()) {
      for (const Engine engine : call_engines()) {
        use(engine);
        const auto type = type_of(variant, pattern, 2);
        const AttentionCall all = inputs.call(type, dtype_of(engine), /*causal=*/true);
        const Tensor difference = (attention(of_query(all, 10), {})[0] - attention(all, {})[10]).abs();
        EXPECT_LT(difference.max().item<double>(), is_double(engine) ? kDoubleContext : kFloatContext) << variant.name();
      }
    }
  }
}

TEST_P(AttentionCore, WhereRowsAreAlikeGivesAQueryTheSameBitsAloneAndAmongOthers) {
  constexpr int64_t kQueries = 9, kHeads = 4;  // together more than become weights together
  for (const int32_t keys : {9, 100}) {        // short rows, and rows long enough that zeros are left out
    const Inputs inputs({kQueries}, {keys}, kHeads, 24, /*spread=*/6);
    for (const Variant& variant : variants()) {
      for (const std::string& pattern : all_patterns())
        for (const Engine engine : call_engines()) {
          SCOPED_TRACE(variant.name() + ", " + pattern + " on " + name_of(engine) + ", " + std::to_string(keys) + " keys");
          use(engine);
          const auto type = type_of(variant, pattern, kHeads);
          AttentionCall all = inputs.call(type, dtype_of(engine));
          all.rows_alike = true;
          const Tensor together = attention(all, {});
          for (int64_t i = 0; i < kQueries; ++i) EXPECT_TRUE(at::equal(attention(of_query(all, i), {})[0], together[i]));
        }
    }
  }
}

TEST_P(AttentionCore, WhereRowsAreAlikeGivesASentenceTheSameBitsAloneAndAmongOthers) {
  const Inputs inputs({5, 5, 0, 3, 9, 1}, {9, 30, 4, 64, 12, 1}, 4, 24, /*spread=*/6);  // heads of several become weights together
  for (const Variant& variant : variants()) {
    for (const Engine engine : call_engines()) {
      SCOPED_TRACE(variant.name() + " on " + name_of(engine));
      use(engine);
      const auto type = type_of(variant, "full", 4);
      AttentionCall all = inputs.call(type, dtype_of(engine));
      all.rows_alike = true;
      const Tensor together = attention(all, {});
      for (const int64_t b : {0, 1, 3, 4, 5}) {
        AttentionCall one = inputs.sentence(b).call(type, dtype_of(engine));
        one.rows_alike = true;
        take_numbers(one, all, inputs.queries->begin(b));
        const Tensor alone = attention(one, {});
        EXPECT_TRUE(at::equal(alone, together.narrow(0, inputs.queries->begin(b), alone.size(0)))) << "sentence " << b;
      }
    }
  }
}

}  // namespace
}  // namespace lacuna::contract
