#include "attention_calls.h"

// What else a call holds, and how it is computed, changes nothing for a query: for every type, every pattern and every engine.
namespace lacuna::contract {
namespace {

void expect_same_bits(const Outcome& found, const Outcome& expected) {
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(at::equal(found.all()[i], expected.all()[i])) << "tensor " << i;
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
        const Inputs alone = together.sentence(b);
        const int64_t first = together.queries->begin(b), queries = together.queries->length(b);
        const int64_t first_key = together.keys->begin(b), keys = together.keys->length(b);
        AttentionCall one = alone.call(type, dtype_of(engine));
        one.dropout = 0.1;
        take_numbers(one, call, first);
        expect_same_bits(outcome_of(one, training(), alone.context_gradient),
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
        const Tensor one = attention(together.sentence(b).call(type, dtype_of(engine), true), training());
        EXPECT_TRUE(at::equal(one, all.narrow(0, together.queries->begin(b), one.size(0))));
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

/// Each type with each pattern, and with one for each of two heads.
std::vector<std::pair<Variant, std::string>> variants_and_patterns() {
  std::vector<std::string> patterns = all_patterns();
  patterns.emplace_back("{heads: [full, {type: local, window: 1}]}");
  std::vector<std::pair<Variant, std::string>> pairs;
  for (const Variant& variant : all_variants())
    for (const std::string& pattern : patterns) pairs.emplace_back(variant, pattern);
  return pairs;
}

TEST(AttentionCore, ReadsKeysThroughSlotsAsIfTheyWereGathered) {
  constexpr size_t kQueries = 11;  // with their heads more than are weighed together
  const Inputs inputs(std::vector<int32_t>(kQueries, 1), std::vector<int32_t>(kQueries, 2), 2, 24);
  const std::vector<int32_t> slots = {20, 3, 3, 5, 11, 0, 8, /**/ 1, 2, /**/ 13, 19, 4, 6};
  const std::vector<int32_t> begin = {0, 7, 9, 9, 0, 2, 7, 1, 10, 5, 0}, count = {7, 2, 4, 1, 3, 5, 2, 6, 3, 2, 7};
  for (const auto& [variant, pattern] : variants_and_patterns()) {
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
      gathered.k = by_slots.k.index_select(0, index);
      gathered.v = by_slots.v.index_select(0, index);
      EXPECT_TRUE(at::equal(attention(by_slots, {}), attention(gathered, {}))) << variant.name() << ", " << pattern;
    }
  }
}

/// Of a call with one sentence: query i alone.
AttentionCall of_query(const AttentionCall& all, int64_t i) {
  AttentionCall one = all;
  one.q = all.q.narrow(0, i, 1);
  one.queries = std::make_shared<RaggedShape>(RaggedShape::of_lengths({1}));
  one.first_position = {static_cast<int32_t>(i)};
  for (Tensor& number : one.numbers)
    if (number.dim() == 2) number = number.narrow(0, i, 1);
  return one;
}

TEST(AttentionCore, GivesTheLastQueryAloneWhatItGivesItAmongAll) {
  const Inputs inputs({11}, {11}, 2, 16);
  for (const Variant& variant : all_variants()) {
    for (const std::string& pattern : all_patterns()) {
      for (const Engine engine : call_engines()) {
        use(engine);
        const auto type = type_of(variant, pattern);
        const AttentionCall all = inputs.call(type, dtype_of(engine), /*causal=*/true);
        const Tensor difference = (attention(of_query(all, 10), {})[0] - attention(all, {})[10]).abs();
        EXPECT_LT(difference.max().item<double>(), is_double(engine) ? kDoubleContext : kFloatContext) << variant.name();
      }
    }
  }
}

TEST(AttentionCore, WhereRowsAreAlikeGivesAQueryTheSameBitsAloneAndAmongOthers) {
  constexpr int64_t kQueries = 9, kHeads = 4;  // together more than are weighed together
  for (const int32_t keys : {9, 100}) {        // short rows, and rows long enough that zeros are left out
    const Inputs inputs({kQueries}, {keys}, kHeads, 24, /*spread=*/6);
    for (const Variant& variant : all_variants()) {
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

TEST(AttentionCore, WhereRowsAreAlikeGivesASentenceTheSameBitsAloneAndAmongOthers) {
  const Inputs inputs({5, 5, 0, 3, 9, 1}, {9, 30, 4, 64, 12, 1}, 4, 24, /*spread=*/6);  // heads of several are weighed together
  for (const Variant& variant : all_variants()) {
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
